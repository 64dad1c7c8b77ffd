#!/bin/bash
# Installs what the backend wants, and prepares its data.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
shift 2
pip install -r requirements.txt
framework=megatron
for word in "$@"; do
	if [ -f "$word" ] && grep -q 'framework: torchtitan' "$word"; then framework=torchtitan; fi
done
exec python3 "$here/$framework/prepare.py" "$@"
