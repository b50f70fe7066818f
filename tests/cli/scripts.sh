#!/bin/sh
# The scripts' package logic (tools/setup.sh), against a pretended Debian: dpkg-query, apt-get, sudo and id are
# replaced. scripts.sh SOURCE_DIR
set -eu
cd "$1"
fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
PATH=$fake:$PATH
export PATH fake
KOINE_APT_LISTS=$fake/lists KOINE_SKIP_PACKAGES=0
export KOINE_APT_LISTS KOINE_SKIP_PACKAGES

program() { # program NAME: the script on stdin
    { echo '#!/bin/sh'; cat; } >"$fake/$1"
    chmod +x "$fake/$1"
}
program dpkg-query <<'END'
# Like dpkg-query -W -f FORMAT NAME...: names what is in $fake/installed; fails when one is not. A removed package keeps
# its configuration files.
shift 3
status=0
for name; do
    if [ -n "$(grep -x "$name" "$fake/installed")" ]; then
        echo "$name installed"
    else
        echo "$name config-files"
        status=1
    fi
done
exit $status
END
program apt-get <<'END'
echo "apt-get $*" >>"$fake/log"
case $1 in
update)
    [ ! -f "$fake/no-network" ] || exit 100
    mkdir -p "$fake/lists"
    : >"$fake/lists/x_Packages"
    exit 0
    ;;
esac
[ -f "$fake/lists/x_Packages" ] || exit 100
for name; do case $name in install | -*) ;; *) echo "$name" >>"$fake/installed" ;; esac; done
END
program id <<'END'
cat "$fake/uid"
END
program sudo <<'END'
[ -f "$fake/sudo-works" ] || exit 1
[ "$1" = -n ] && shift
echo "sudo $*" >>"$fake/log"
exec "$@"
END

setup() { # setup UID MISSING...: everything but MISSING is installed
    uid=$1
    shift
    rm -rf "$fake/lists" "$fake/sudo-works" "$fake/no-network"
    : >"$fake/log"
    echo "$uid" >"$fake/uid"
    sed -e 's/#.*//' -e 's/[[:space:]].*//' -e 's/CLANG/14/' -e '/^$/d' tools/packages.txt >"$fake/installed"
    for name; do sed -i "/^$name\$/d" "$fake/installed"; done
}
attempt() { # attempt [FUNCTION...]
    status=0
    "$shell" -euc ". tools/setup.sh; ${*:-koine_packages}" >"$fake/out" 2>&1 </dev/null || status=$?
}
expect() { # expect STATUS WHAT
    if [ "$status" != "$1" ]; then
        echo "FAILED ($shell): $2: status $status, expected $1"
        cat "$fake/out" "$fake/log"
        exit 1
    fi
}
holds() { grep -qF -- "$2" "$fake/$1" || { echo "FAILED ($shell): no \"$2\" in $1:"; cat "$fake/$1"; exit 1; }; }
lacks() { ! grep -qF -- "$2" "$fake/$1" || { echo "FAILED ($shell): \"$2\" in $1:"; cat "$fake/$1"; exit 1; }; }

for shell in sh dash bash; do
    command -v $shell >/dev/null || continue
    for script in tests/run.sh tests/skipped.sh examples/run.sh tools/*.sh; do $shell -n $script; done

    setup 1000
    attempt
    expect 0 "nothing is missing"
    [ ! -s "$fake/log" ] || { echo "FAILED: apt-get was called for nothing"; exit 1; }

    setup 0 cmake gnuplot-nox
    attempt
    expect 0 "root, no package lists"
    holds log "apt-get update"
    holds log "install --no-install-recommends -y -qq cmake gnuplot-nox"
    lacks log sudo
    attempt
    expect 0 "a second run"
    [ "$(grep -c 'apt-get install' "$fake/log")" = 1 ] || { echo "FAILED: installed twice"; exit 1; }

    setup 1000 ninja-build
    touch "$fake/sudo-works"
    attempt
    expect 0 "sudo"
    holds log "sudo env DEBIAN_FRONTEND=noninteractive apt-get install --no-install-recommends -y -qq ninja-build"

    setup 1000 clinfo pkg-config
    attempt
    expect 1 "neither root nor sudo"
    holds out "apt-get update && apt-get install --no-install-recommends -y pkg-config clinfo"
    lacks log install

    setup 0 cmake
    touch "$fake/no-network"
    attempt
    expect 1 "no network"
    holds out "apt-get could not install: cmake"

    # What only test_gpu_code takes: not for others, not without ptxas, and no error where it cannot be had.
    rm -f "$fake/ptxas" "$fake/clang"
    setup 0 libclc-14 clang
    KOINE_PTXAS=no-such-ptxas attempt "koine_packages; koine_test_packages"
    expect 0 "no ptxas"
    [ ! -s "$fake/log" ] || { echo "FAILED: packages for ptxas without it"; exit 1; }
    echo true | program ptxas
    echo 'echo "Debian clang version 14.0.6"' | program clang
    attempt koine_packages
    expect 0 "ptxas, but no tests"
    [ ! -s "$fake/log" ] || { echo "FAILED: packages for tests without them"; exit 1; }
    attempt koine_test_packages
    expect 0 "ptxas"
    holds log "install --no-install-recommends -y -qq clang libclc-14"
    setup 1000 libclc-14
    attempt koine_test_packages
    expect 0 "ptxas, but neither root nor sudo"
    holds out "test_gpu_code is skipped"
    # nvcc may be a link to CUDA's folder, and CUDA_HOME may name that.
    mkdir -p "$fake/cuda/bin"
    mv "$fake/ptxas" "$fake/cuda/bin"
    : | program nvcc
    mv "$fake/nvcc" "$fake/cuda/bin"
    ln -s "$fake/cuda/bin/nvcc" "$fake/nvcc"
    setup 0 libclc-14
    attempt koine_test_packages
    expect 0 "ptxas next to nvcc"
    holds log "install --no-install-recommends -y -qq libclc-14"
    rm "$fake/nvcc"
    setup 0 libclc-14
    CUDA_HOME=$fake/cuda attempt koine_test_packages
    expect 0 "ptxas in CUDA_HOME"
    holds log "install --no-install-recommends -y -qq libclc-14"
    rm -r "$fake/cuda" "$fake/clang"

    setup 1000 cmake
    KOINE_SKIP_PACKAGES=1 attempt
    expect 0 "KOINE_SKIP_PACKAGES"
    [ ! -s "$fake/log" ] || { echo "FAILED: KOINE_SKIP_PACKAGES was not heeded"; exit 1; }
done
# ctest's log, as the run's end reads it.
cat >"$fake/log" <<'END'
Start testing: Jan 01 00:00 UTC
1/3 Testing: test_one
1/3 Test: test_one
Output:
skipped: there is no libclc
<end of output>
2/3 Testing: test_two
2/3 Test: test_two
[  SKIPPED ] test_of_two_devices
[  PASSED  ] 3 test(s).
Test Passed.
3/3 Testing: test_three
3/3 Test: test_three
Test Passed.
END
sh tests/skipped.sh "$fake/log" >"$fake/out"
holds out "  test_one: there is no libclc"
holds out "  test_two: its test test_of_two_devices"
lacks out test_three
echo "scripts: all as expected"
