#!/bin/bash
# Installs what the backend wants, and prepares its data.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
shift 2
pip install -r requirements.txt
exec python3 "$here/megatron/prepare.py" "$@"
