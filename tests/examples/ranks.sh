#!/bin/sh
# train_fashion_mnist by several ranks: the same bits twice and when resumed, one rank's signal ends all, a second run
# in the same folder is refused. Other programs: what trains over ranks, and what says that it does not.
# ranks.sh MPIEXEC BIN_DIR FOLDER
set -u
mpiexec=$1 bin=$2 folder=$3
program=$bin/train_fashion_mnist
data=/usr/share/datasets/fashion-mnist
[ -r $data/train-images-idx3-ubyte.gz ] || [ -r $data/train-images-idx3-ubyte ] || exit 77
rm -rf "$folder"
mkdir -p "$folder"
failed=0

fail() { # fail WHAT FILE
    printf '%s:\n' "$1"
    tail -n 20 "$2"
    failed=1
}

train() { # train OUT OPTION...: two ranks; the output in OUT.log
    out=$folder/$1
    shift
    "$mpiexec" -n 2 "$program" --limit 21 --batch-size 4 --seed 3 --workers 1 --out "$out" "$@" >"$out.log" 2>&1
}

same() { # same A B
    for file in last.safetensors checkpoint.safetensors history.csv; do
        cmp "$folder/$1/$file" "$folder/$2/$file" || fail "$1 and $2 differ in $file" "$folder/$2.log"
    done
}

# One rank prints, with the figures of all samples.
train whole --epochs 3 || fail "a run failed" "$folder/whole.log"
grep -q '^ranks: 2 over mpi$' "$folder/whole.log" || fail "the number of ranks is missing" "$folder/whole.log"
[ "$(grep -c '^device: ' "$folder/whole.log")" -eq 1 ] || fail "not one rank printed" "$folder/whole.log"
[ "$(grep -c '^epoch 3/3 ' "$folder/whole.log")" -eq 1 ] || fail "not one rank showed progress" "$folder/whole.log"

train again --epochs 3 || fail "a run failed" "$folder/again.log"
same whole again
train broken --epochs 2 || fail "a run failed" "$folder/broken.log"
train broken --epochs 3 --resume || fail "resuming failed" "$folder/broken.log"
grep -qi warning "$folder/broken.log" && fail "resuming warned" "$folder/broken.log"
same whole broken

# SIGTERM to the second rank alone.
"$mpiexec" -n 2 sh -c '
    case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}} in 1) echo $$ >"$0/pid" ;; esac
    exec "$@"' "$folder" "$program" --limit 400 --batch-size 4 --seed 3 --epochs 100000 --patience 0 \
    --out "$folder/ended" >"$folder/ended.log" 2>&1 &
tries=0
while ! grep -q '^epoch 1/' "$folder/ended.log" && [ $tries -lt 3000 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
kill -TERM "$(cat "$folder/pid")"
wait $!
[ $? -eq 143 ] || fail "a signal to one rank did not end the run with 143" "$folder/ended.log"
[ "$(grep -c 'training was interrupted by SIGTERM ' "$folder/ended.log")" -eq 1 ] ||
    fail "the signal was not reported once" "$folder/ended.log"
epochs=$(($(wc -l <"$folder/ended/history.csv") - 1))
train ended --limit 400 --epochs $epochs --patience 0 --resume ||
    fail "what was interrupted cannot be resumed" "$folder/ended.log"

# An error that only rank 0 has, the lock of its folder, ends all.
if command -v flock >/dev/null; then
    flock "$folder/whole" true
    flock "$folder/whole" "$mpiexec" -n 2 "$program" --limit 21 --batch-size 4 --out "$folder/whole" \
        >"$folder/locked.log" 2>&1 && fail "a locked folder was used" "$folder/locked.log"
    [ "$(grep -c 'rank 0 (.*): trainer: another training run is writing' "$folder/locked.log")" -eq 1 ] ||
        fail "the lock was not reported once" "$folder/locked.log"
fi

"$mpiexec" -n 2 "$bin/train_gpt" --epochs 1 --steps 3 --batch-size 2 --context 16 --layers 1 --heads 2 --width 16 \
    --sample 5 --quiet --out "$folder/gpt" >"$folder/gpt.log" 2>&1 || fail "train_gpt failed" "$folder/gpt.log"
[ "$(grep -c '^epoch 1: held-out loss ' "$folder/gpt.log")" -eq 1 ] ||
    fail "train_gpt printed something else" "$folder/gpt.log"

# Two ranks learn from half of the images each, in half as many steps.
"$mpiexec" -n 2 "$bin/loop_by_hand" --epochs 2 --limit 40 --batch-size 10 >"$folder/loop.log" 2>&1 ||
    fail "loop_by_hand failed" "$folder/loop.log"
grep -q '^ranks: 2 over mpi$' "$folder/loop.log" && [ "$(grep -c '^epoch [12]: loss ' "$folder/loop.log")" -eq 2 ] ||
    fail "loop_by_hand did not train over ranks" "$folder/loop.log"

"$mpiexec" -n 2 "$bin/vae" >"$folder/vae.log" 2>&1 && fail "vae trained twice" "$folder/vae.log"
[ "$(grep -c '^vae: this program trains in one process, but 2 were started' "$folder/vae.log")" -eq 1 ] ||
    fail "vae did not say that it trains alone" "$folder/vae.log"
exit $failed
