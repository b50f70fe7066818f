# shellcheck shell=sh tool.sh - sourced: koine_tool NAME sets `tool` to NAME of version 14, or ends the script as a
# skipped test. Other versions give different results.
koine_tool() {
    for tool in "$1-14" "$1"; do
        command -v "$tool" >/dev/null 2>&1 || continue
        ! "$tool" --version | grep -q 'version 14\.' || return 0
    done
    echo "skipped: there is no $1 of version 14"
    exit 77
}
