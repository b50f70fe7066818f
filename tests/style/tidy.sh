#!/bin/sh
# The checks of .clang-tidy find nothing: tidy.sh SOURCE_DIR BUILD_DIR quick|all FOLDER...
# "quick" leaves out clang's static analyzer.
set -eu
. "$(dirname "$0")/tool.sh"
koine_tool clang-tidy
source=$1 build=$2 checks=
[ "$3" = all ] || checks=-clang-analyzer-*
shift 3
cd "$source"
# Files that are compiled: others (for other systems, say) have no command to parse them with.
files=$(mktemp)
trap 'rm -f "$files"' EXIT
for folder; do
    sed -n "s|^ *\"file\": \"\($source/$folder/.*\.c\)\",\{0,1\}\$|\1|p" "$build/compile_commands.json"
done | sort -u >"$files"
# Two checks whose reports do not count, because the analyzer sees one file at a time and takes what another returns for
# NULL; the sanitizers watch instead. Turned off, they make clang-tidy 14 crash.
drop_null='/: (warning|error): /{drop = /core\.(NullDereference|NonNullParamChecker)/} !drop'
[ -s "$files" ] || { echo "no file of $* is in $build/compile_commands.json"; exit 1; }
<"$files" xargs -n 20 "$tool" -p "$build" --quiet ${checks:+--checks="$checks"} 2>&1 |
    awk "$drop_null" |
    { ! grep -v -e '^[0-9]* warnings\{0,1\} generated\.$' -e '^Suppressed ' -e '^Use -header-filter'; }
