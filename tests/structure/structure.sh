#!/bin/sh
# Checks the dependencies between sources: structure.sh SOURCES DRAWING OBJECTS NM...
#
# SOURCES is src/, DRAWING docs/architecture.svg, OBJECTS a file that lists the library's objects, whose paths end in
# those of the sources, NM... the words of `nm -A -P`. Fails when
#   - a layer (a folder of src/) is missing in the drawing, includes a header of a layer drawn above it, or calls or
#     reads a symbol that one above defines;
#   - folders of rt, watch or ops form a circle, by includes and symbols together, or files of rt or watch do, by
#     symbols (those of ops do: a gradient is computed by operators, whose gradients are);
#   - a file outside rt includes OpenCL's headers, be it through others, or calls OpenCL; or two of rt include them;
#   - a header of src, or a file of the kernels, in cl beside it, is named nowhere.
# Sub-folders of other layers are peers: they may use each other.
set -u
LC_ALL=C
export LC_ALL
src=$1 drawing=$2 objects=$3
shift 3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

fail() { # fail TITLE: the offenders are on standard input; none is no failure
    sed 's/^/    /' >"$work/offenders"
    [ -s "$work/offenders" ] || return 0
    echo "FAILED: $1"
    cat "$work/offenders"
    echo "$1" >>"$work/failures" # a file: it runs in pipes
}

# --- dependencies: lines "FILE FILE WHAT", paths below src without their endings ----------------------------------

# Includes of our own headers; those of other libraries, "<CL/cl.h>" among them, have no file.
(cd "$src" && find . -name '*.[ch]') | sed 's,^\./,,' | sort >"$work/files"
# shellcheck disable=SC2094 # they are read only
(cd "$src" && xargs grep -En '^ *#include "' /dev/null) <"$work/files" |
    sed -E 's/^([^:]*):[0-9]+: *#include "([^"]*)".*/\1 \2 #include/' |
    awk 'NR == FNR { there[$1] = 1; next } $2 in there' "$work/files" - >"$work/includes"

# Symbols: where each is defined, then who uses it. An object's name ends in PATH.c.o.
tr '\n' '\0' <"$objects" | xargs -0 "$@" | awk '{
        name = $1
        sub(/:$/, "", name); sub(/\.c\.(o|obj)$/, "", name); sub(/.*\.dir\/(\.\/)*/, "", name)
        if ($3 == "U") { wants[++n] = name; symbol[n] = $2 }
        else if ($3 ~ /^[TDBRVCW]$/) { home[$2] = name }
    }
    END {
        for (i = 1; i <= n; i++) {
            to = (symbol[i] in home) ? home[symbol[i]] : symbol[i] ~ /^_?(cl[A-Z]|CLBlast)/ ? "OpenCL" : ""
            if (to != "" && to != wants[i]) print wants[i], to, symbol[i]
        }
    }' >"$work/all-symbols"
grep -v ' OpenCL ' "$work/all-symbols" | grep -v '^kernel_sources \| kernel_sources ' >"$work/symbols"

# Unrecognised paths would satisfy all rules.
cut -d' ' -f1 "$work/symbols" | sort -u | sed 's/$/.c/' | grep -vxFf "$work/files" | fail "objects of no source"
if [ ! -s "$work/includes" ] || [ ! -s "$work/symbols" ]; then
    echo none | fail "includes and uses of symbols"
fi

# --- layers --------------------------------------------------------------------------------------------------------

# Their names in the drawing, the highest first.
sed -nE 's/^<text x="32" y="[0-9]+" font-weight="bold">([a-z]+)<.*/\1/p' "$drawing" >"$work/layers"
sed -nE 's,^([a-z]+)/.*,\1,p' "$work/files" | sort -u | grep -vxFf "$work/layers" |
    fail "layers that docs/architecture.svg does not show"
cat "$work/includes" "$work/symbols" |
    awk 'NR == FNR { height[$1] = NR; next }
        { split($1, a, "/"); split($2, b, "/") }
        height[b[1]] < height[a[1]] { print $1, "uses", $2 ":", $3 }' "$work/layers" - |
    sort -u | fail "uses of a layer above"

# --- circles -------------------------------------------------------------------------------------------------------

circle() { # circle TITLE: pairs on standard input
    sort -u >"$work/pairs"
    tsort "$work/pairs" 2>&1 >/dev/null | sed 's/^tsort: //; /input contains a loop/d' | fail "$1"
}

for layer in rt watch ops; do
    cat "$work/includes" "$work/symbols" | grep "^$layer/[^ ]* $layer/" |
        awk '{ a = $1; b = $2; sub(/\/[^\/]*$/, "", a); sub(/\/[^\/]*$/, "", b) } a != b { print a, b }' |
        circle "a circle of folders of $layer"
    [ $layer = ops ] ||
        grep "^$layer/[^ ]* $layer/" "$work/symbols" | cut -d' ' -f1,2 | circle "a circle of files of $layer"
done

# --- OpenCL --------------------------------------------------------------------------------------------------------

(cd "$src" && xargs grep -El '^ *#include *<(CL|OpenCL)/') <"$work/files" >"$work/doors"
grep -v '^rt/' "$work/doors" | fail "files outside rt that include OpenCL's headers"
[ "$(grep -c '^rt/' "$work/doors")" -eq 1 ] ||
    grep '^rt/' "$work/doors" | fail "more than one file that includes OpenCL's headers"

# Whatever includes that header, directly or through others. CLBlast's has them too.
awk 'NR == FNR { reached[$1] = 1; next }
    { from[++n] = $1; to[n] = $2 }
    END {
        do {
            more = 0
            for (i = 1; i <= n; i++)
                if (reached[to[i]] && !reached[from[i]]) { reached[from[i]] = more = 1; by[from[i]] = to[i] }
        } while (more)
        for (f in reached) if (f !~ /^rt\// && f in by) print f, "through", by[f]
    }' "$work/doors" "$work/includes" | sort | fail "files outside rt that include OpenCL's headers through others"
grep ' OpenCL ' "$work/all-symbols" | grep -v '^rt/' | fail "calls of OpenCL or CLBlast outside rt"

# --- what is left over ----------------------------------------------------------------------------------------------

# Each file's first line names itself.
(cd "$src/.." && grep -roE '[a-z0-9_/]+\.(h|clh?)\>' src cl) | sed 's,^[a-z]*/,,' |
    awk -F: '$1 != $2 { print $2 }' | sort -u >"$work/named"
(cd "$src" && find . -name '*.h' && cd ../cl && find . -type f) | sed 's,^\./,,' | sort -u |
    grep -vxFf "$work/named" | fail "files that nothing names"

echo "$(wc -l <"$work/files") files, $(wc -l <"$work/includes") includes, $(wc -l <"$work/symbols") uses of symbols"
[ ! -e "$work/failures" ]
