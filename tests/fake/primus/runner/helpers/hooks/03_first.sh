#!/bin/bash
set -euo pipefail
LOG_INFO_RANK0 "the first hook, of $1 $2"
echo "env.STAND_IN_FIRST=one two"
echo "env.AITER_LOG_LEVEL=WARNING"
