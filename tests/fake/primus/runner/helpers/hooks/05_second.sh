#!/bin/bash
# Sees what the first one said, as it would behind primus-cli; on stderr it counts as well.
set -euo pipefail
echo "env.STAND_IN_SECOND=$STAND_IN_FIRST three" >&2
