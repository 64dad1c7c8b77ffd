# Stands for the file that Primus' hooks rely on: functions in their environment, and a trap of its
# own.
# shellcheck shell=bash
LOG_INFO_RANK0() { [ "${NODE_RANK:-0}" != 0 ] || echo "[INFO] $*"; }
export -f LOG_INFO_RANK0
trap 'echo "the trap of common.sh"' EXIT INT TERM
