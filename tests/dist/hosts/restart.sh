#!/bin/sh
# examples/elastic.sh with train_fashion_mnist: a rank is killed, or its host cut off the network, in the third epoch;
# training goes on with one rank less from the last epoch, and ends with the accuracy of an unbroken run, as far as a
# smaller joint batch allows. restart.sh HOSTS MPIEXEC ELASTIC PROGRAM
set -u
hosts=$1 mpiexec=$2 elastic=$3 program=$4
here=$(dirname "$0")
data=/usr/share/datasets/fashion-mnist
[ -r $data/train-images-idx3-ubyte.gz ] || [ -r $data/train-images-idx3-ubyte ] || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
ranks=3 epochs=6
failed=0
fail() {
    echo "FAILED: $1"
    tail -n 30 "$2"
    failed=1
}

# A rank of the first try leaves the number of its process.
cat >"$work/rank" <<'END'
#!/bin/sh
folder=$1
shift
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}
[ -e "$folder/rank.$rank" ] || echo $$ >"$folder/rank.$rank"
exec "$@"
END
# On the first N hosts: launch N COMMAND...
cat >"$work/launch" <<END
#!/bin/sh
KOINE_HOSTS=\$(echo "\$KOINE_HOSTS" | cut -d, -f1-"\$1")
shift
export KOINE_HOSTS
exec sh "$here/mpirun.sh" "$hosts" "$mpiexec" "\$@"
END
chmod +x "$work/rank" "$work/launch"

train() { # train NAME COMMAND...: the launcher and its options
    folder=$work/$1
    mkdir -p "$folder"
    shift
    "$@" "$work/rank" "$folder" "$program" --limit 1500 --batch-size 16 --epochs $epochs --patience 0 --seed 1 \
        --workers 1 --out "$folder/run" >"$folder/log" 2>&1
}

accuracy() { # of the last epoch: accuracy NAME
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "val_acc") c = i } END { print $c }' \
        "$work/$1/run/history.csv"
}

await_epoch() { # await_epoch NAME NUMBER; false: the run ended before
    tries=0
    while ! grep -q "^epoch $2/" "$work/$1/log" 2>/dev/null; do
        tries=$((tries + 1))
        kill -0 $run 2>/dev/null && [ $tries -lt 3000 ] || return 1
        sleep 0.1
    done
}

check() { # check NAME
    log=$work/$1/log
    wait $run || fail "$1: the run ended with status $?" "$log"
    grep -q "elastic.sh: status [0-9]*; restart 1, on 2 ranks" "$log" || fail "$1: no restart" "$log"
    [ "$(grep -c "^epoch $epochs/$epochs " "$log")" -eq 1 ] || fail "$1: the last epoch is missing" "$log"
    [ "$(wc -l <"$work/$1/run/history.csv")" -eq $((epochs + 1)) ] ||
        fail "$1: an epoch is missing or twice" "$work/$1/run/history.csv"
    echo "$1: accuracy $(accuracy "$1"), unbroken $whole"
    awk -v a="$(accuracy "$1")" -v b="$whole" 'BEGIN { exit !(a > b - 0.04 && a > 0.5) }' ||
        fail "$1: the accuracy is off" "$log"
}

train whole "$mpiexec" -n $ranks || fail "an unbroken run failed" "$work/whole/log"
whole=$(accuracy whole)

train killed sh "$elastic" --ranks $ranks --min-ranks 2 --launch "$mpiexec -n %n" -- &
run=$!
await_epoch killed 2 || fail "killed: it does not come to epoch 3" "$work/killed/log"
kill -KILL "$(cat "$work/killed/rank.2")"
check killed

train cut "$hosts" $ranks 1000 0.2 sh "$elastic" --ranks $ranks --min-ranks 2 --grace 10 --launch "$work/launch %n" -- &
run=$!
if await_epoch cut 2; then
    # $hosts keeps the namespaces; it is the only child of the subshell that runs it
    KOINE_HOSTS_PROCESS=$(tr '\0' '\n' <"/proc/$(cat "$work/cut/rank.0")/environ" |
        sed -n 's/^KOINE_HOSTS_PROCESS=//p') \
        "$hosts" 10.77.0.$ranks ip link set eth0 down
    check cut
elif grep -q "^hosts: " "$work/cut/log"; then
    echo "hosts cannot be made here: $(grep -m 1 '^hosts: ' "$work/cut/log")"
else
    fail "cut: it does not come to epoch 3" "$work/cut/log"
fi
exit $failed
