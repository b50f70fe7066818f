#!/bin/sh
# The programs of docs/guide.md build and do what the page says: guide.sh SOURCE_DIR BUILD_DIR LIBRARY. They run in the
# page's order, in one folder, since one loads what another has saved.
set -eu
source=$1 build=$2 library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
awk '/^```c$/ { on = 1; file = "program" ++n ".c"; next }
    /^```$/ { on = 0 }
    on { print > file }' "$source/docs/guide.md"
[ -e program6.c ] && [ ! -e program7.c ] || { echo "docs/guide.md has not six programs" >&2; exit 1; }

number=0
# next PIECE...: builds and runs the next program; its output holds every piece.
next() {
    number=$((number + 1))
    ${CC:-cc} -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wshadow -Werror -I"$source/include" -I"$build/include" \
        program$number.c -o program$number "$library" -Wl,-rpath,"$(dirname "$library")" -pthread -lm
    ./program$number >output 2>errors || { cat output errors; echo "program $number of docs/guide.md failed"; exit 1; }
    for piece; do
        grep -q "$piece" output ||
            { cat output; echo "program $number of docs/guide.md does not say \"$piece\""; exit 1; }
    done
}
next '^epoch 1: loss 0' '^epoch 10: loss 0\.0'
next '^(0.0, 0.0): inside, 0\.9\|^(0.0, 0.0): inside, 1' '^(0.9, 0.9): outside' '^(-0.1, 0.3): inside'
next '^thread 0: 1[5-9] of 25 inside $' '^thread 3: 1[5-9] of 25 inside $'
next '(1): Residual' '^1\.scale$' '^1\.body\.0\.weight$'
next '\[ -4\., *-8\., -12\.\]'
next '^best epoch [1-8] of [1-8], accuracy \(0\.9\|1\.000\)'
for file in history.csv checkpoint.safetensors last.safetensors; do
    [ -s run/$file ] || { echo "docs/guide.md: the trainer wrote no run/$file"; exit 1; }
done
