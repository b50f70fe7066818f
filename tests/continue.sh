#!/bin/sh
# Runs tests, and keeps the results so that another call goes on after an interruption:
# sh tests/continue.sh [--list] BUILD RESULTS [CTEST ARGUMENT...]
#
# When a test ends, RESULTS gets a line: its name, Passed, Skipped, Failed, Timeout or NotRun, and its seconds. Tests
# that have passed or were skipped there do not run again; those that failed come last. Their output is appended to
# RESULTS.log. Exit status 0 if in the end all have passed or were skipped. --list runs nothing: it prints each of the
# tests with its last result, or None.
set -eu
list=no
[ "$1" != --list ] || { list=yes; shift; }
build=$1 results=$2
shift 2
touch "$results"

# CTEST-ARGUMENT...: lines NAME RESULT.
last_results() {
    ctest --test-dir "$build" -N "$@" | sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p' | awk -v results="$results" '
        BEGIN { while ((getline <results) > 0) last[$1] = $2 }
        { print $1, $1 in last ? last[$1] : "None" }'
}

# of KIND CTEST-ARGUMENT...: the tests without a result (new) or whose last one is a failure (failed), as A|B|C.
of() {
    kind=$1
    shift
    last_results "$@" | awk -v kind="$kind" '
        { result = $2 == "None" ? "new" : $2 ~ /^(Passed|Skipped)$/ ? "good" : "failed" }
        result == kind { printf "%s%s", n++ ? "|" : "", $1 }'
}

# run NAMES CTEST-ARGUMENT...
run() {
    [ -n "$1" ] || return 0
    names=$1
    shift
    # Not awk: Debian's reads a pipe by blocks, and an interruption would lose the results in them.
    ctest --test-dir "$build" --output-on-failure "$@" -R "^($names)\$" </dev/null 2>&1 | while IFS= read -r line; do
        printf '%s\n' "$line" >>"$results.log"
        case $line in *' Test '*'#'[0-9]*': '*) ;; *) continue ;; esac
        printf '%s\n' "$line"
        case $line in
        *' Passed '*) word=Passed ;;
        *'***Skipped'*) word=Skipped ;;
        *'***Timeout'*) word=Timeout ;;
        *'***Not Run'*) word=NotRun ;;
        *) word=Failed ;;
        esac
        name=${line#*'#'} seconds=${line% sec*}
        name=${name#*: }
        echo "${name%% *} $word ${seconds##* }" >>"$results"
    done
}

[ $list = no ] || { last_results "$@"; exit; }
new=$(of new "$@") failed=$(of failed "$@")
run "$new" "$@"
run "$failed" "$@"
[ -z "$(of new "$@")$(of failed "$@")" ]
