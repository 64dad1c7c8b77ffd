# shellcheck shell=bash
# What primus-cli does on each node before it starts the ranks: the hooks of its tree,
# runner/helpers/hooks/* and then those of train/pretrain, in the order of their names. What one
# prints as env.NAME=VALUE is in the environment of those behind it, and in that of the ranks;
# extra.key=value goes to the end of their command. Words: the command of a rank. Working directory:
# the checkout. A name in braces that is a recipe's key would be replaced by its value: none is
# written so.
set -u -o pipefail
began=$SECONDS
python=$1
main=$2
shift 2

say() { echo "[prepare] $*"; }

# give NAME VALUE: for the hooks and for the ranks, unless the job says it already.
give() {
    [ -z "$(printenv "$1")" ] || return 0
    export "$1=$2"
    echo "env.$1=$2"
}

# private DIR: made, unless it is there and ours. Others know its name, and what lies in it is
# executed.
private() {
    mkdir -m 700 "$1" 2>/dev/null
    if [ -L "$1" ] || [ ! -d "$1" ] || [ ! -O "$1" ]; then
        say "$1 is not a directory of this user's own:" \
            "remove it, or name a checkpoint.dir, or another TMPDIR in env"
        exit 1
    fi
}

if [ ! -d runner/helpers/hooks ]; then
    say "$PWD has no runner/helpers/hooks: nothing to prepare"
    exit 0
fi
command -v "$python" >/dev/null || {
    say "$python is not there: name the python that has torch in engine.python"
    exit 1
}
case $python in */*) PATH=$(dirname "$python"):$PATH ;; esac     # hooks say python3 and pip
export PATH PRIMUS_PATH=$PWD
mine=$(mktemp -d) || exit 1
trap 'rm -rf "$mine"' EXIT

# Where the user may write into the checkout, data goes there, as with primus-cli; else to the job's
# own directory, which is that of its checkpoints, on every node the same.
own=
if [ -w . ]; then
    data=$PWD/data
else
    own=${MOE_CHECKPOINT_DIR:-}
    own=${own%/checkpoints}
    if [ -z "$own" ] || ! mkdir -p "$own/prepare" 2>/dev/null; then
        own=${TMPDIR:-/tmp}/moe-$(id -u)
        private "$own"
        own=$own/$MOE_JOB
        private "$own"
        private "$own/prepare"
        [ "${NNODES:-1}" = 1 ] ||
            say "data prepared in $own is seen by this node alone:" \
                "name a checkpoint.dir, or DATA_PATH in env"
    fi
    own=$own/prepare
    mkdir -p "$own" || exit 1
    data=$own/data
    say "$PWD cannot be written to: data and output go to $own"
fi
give DATA_PATH "$data"
mkdir -p "$DATA_PATH" || exit 1
give HF_HOME "$DATA_PATH/huggingface"

config=
for word in "$@"; do
    [ "$config" != next ] || config=$word
    [ "$word" != --config ] || config=next
done
backend=()
if [ -n "$own" ]; then
    # Logs, TensorBoard and traces. Where the experiment has a fixed workspace, an absolute team
    # drops it.
    if grep -q '^workspace:' "$config" 2>/dev/null &&
        ! grep -q '^workspace:.*PRIMUS_WORKSPACE' "$config"; then
        give PRIMUS_TEAM "$own/output"
    else
        give PRIMUS_WORKSPACE "$own/output"
    fi
    if grep -q 'framework: *torchtitan' "$config" 2>/dev/null && ! grep -q dump_folder "$config" &&
        [[ " $* " != *dump_folder* ]]; then
        echo "extra.job.dump_folder=$own/output"
    fi
    # The helper that indexes data sets is built where Megatron lies.
    megatron=third_party/Megatron-LM
    if [ -f $megatron/megatron/core/datasets/Makefile ] &&
        [ ! -w $megatron/megatron/core/datasets ] &&
        ! make -q -C $megatron/megatron/core/datasets >/dev/null 2>&1; then
        backend=(--backend_path "$own/Megatron-LM.${NODE_RANK:-0}")
        if [ ! -d "${backend[1]}" ]; then      # whole, or not at all
            rm -rf "${backend[1]}.new"
            cp -r --no-preserve=mode $megatron "${backend[1]}.new" &&
                mv -T "${backend[1]}.new" "${backend[1]}" || exit 1
        fi
        say "the helper of Megatron's data sets is built in ${backend[1]}"
    fi
fi

# Nodes that share a tree would build this helper in it at the same time, each into the same file:
# here one after the other, and the hook finds it built. Why it cannot be built is the hook's to
# say.
datasets=third_party/Megatron-LM/megatron/core/datasets
if [ -f $datasets/Makefile ] && [ -w $datasets ] &&
    grep -q 'framework: *megatron' "$config" 2>/dev/null && command -v flock >/dev/null; then
    flock -w 600 $datasets/Makefile make -C $datasets >/dev/null 2>&1
fi

# Packages are those of the image, unless the job's env says PRIMUS_SKIP_PIP: "0".
if [ "${PRIMUS_SKIP_PIP:-0}" = 1 ]; then
    for name in pip pip3; do
        # shellcheck disable=SC2016
        printf '#!/bin/sh\ncase $1 in\ninstall | uninstall) %s ;;\n*) exec %q "$@" ;;\nesac\n' \
            'echo "[prepare] left out, since PRIMUS_SKIP_PIP is 1: pip $*"' \
            "$(command -v $name || echo false)" >"$mine/$name"
        chmod 755 "$mine/$name"
    done
    PATH=$mine:$PATH
fi

run() {
    local hook=$1 start=$SECONDS line status with=bash
    shift
    case $hook in
    */10_auto_nccl_net.sh)
        say "$hook left out: the NICs and the interface of a rank are moectl's, by explain env"
        return
        ;;
    *.py) with=python3 ;;
    esac
    # logging functions of common.sh reach a hook by its environment; the file also sets traps,
    # which are not ours
    (
        # shellcheck disable=SC1091
        [ ! -f runner/lib/common.sh ] || source runner/lib/common.sh
        exec $with "$hook" "$@"
    ) 2>&1 </dev/null | tee "$mine/said"
    status=$?
    while IFS= read -r line; do
        [[ $line =~ ^env\.([A-Za-z_][A-Za-z0-9_]*)=(.*)$ ]] &&
            export "${BASH_REMATCH[1]}=${BASH_REMATCH[2]}"
    done <"$mine/said"
    n=$((n + 1))
    say "$hook: $((SECONDS - start)) s"
    [ $status = 0 ] || { say "$hook ended with exit code $status"; exit "$status"; }
}

n=0
while IFS= read -r hook; do
    run "$hook" "$@" --data_path "$DATA_PATH" --patch_args "$mine/patch_args.txt" "${backend[@]}"
done < <(for dir in runner/helpers/hooks "runner/helpers/hooks/$1/$2"; do
    find "$dir" -maxdepth 1 -type f \( -name '*.sh' -o -name '*.py' \) 2>/dev/null | LC_ALL=C sort
done)
say "$n hooks of $main $1 $2 on node ${NODE_RANK:-0}: $((SECONDS - began)) s"
