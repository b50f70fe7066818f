# shellcheck shell=sh
# tools/setup.sh - sourced by tests/run.sh and examples/run.sh (POSIX sh):
# installs missing packages, configures, builds.
#
#   . tools/setup.sh; koine_packages; koine_build [TARGET...]; koine_check_drivers
#   koine_test_packages, after koine_packages: packages only for tests
#
# Environment: KOINE_SKIP_PACKAGES=1 installs no packages (another distribution, or installed by other means);
#              KOINE_BUILD_DIR names the build folder (default: build); KOINE_JOBS the number of compilers at once.

koine_say() { printf '%s\n' "$*" >&2; }
koine_die() { koine_say "error: $*"; exit 1; }

koine_build_dir=${KOINE_BUILD_DIR:-build}
koine_jobs=${KOINE_JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)}

# Prints the packages that are not installed, separated by spaces. Uses a single dpkg-query, so later runs are fast.
koine_missing_of() { # koine_missing_of NAME...
    wanted=$(printf '%s\n' "$@")
    # shellcheck disable=SC2086 # the names are words
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null | sed -n 's/ installed$//p')
    for name in $wanted; do
        printf '%s\n' "$installed" | grep -qx "$name" || printf '%s ' "$name"
    done
}

# Sets koine_root to the command that runs another as root ("" if we are root). Fails if there is none.
koine_find_root() {
    koine_root=
    [ "$(id -u)" = 0 ] && return 0
    command -v sudo >/dev/null 2>&1 || return 1
    koine_root="sudo -n"
    sudo -n true 2>/dev/null && return 0
    koine_root="sudo" # asks for a password, so only on a terminal
    [ -t 0 ]
}

koine_apt_get() {
    # shellcheck disable=SC2086 # koine_root is a command with arguments, or nothing
    $koine_root env DEBIAN_FRONTEND=noninteractive apt-get "$@" >&2
}

koine_install() { koine_apt_get install --no-install-recommends -y -qq "$@"; }

koine_has_apt() { command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; }

# The packages of tools/packages.txt that are always needed.
koine_needed_packages() {
    sed -e 's/#.*//' -e '/[[:space:]]with \(ptxas\|tests\):/d' -e 's/[[:space:]].*//' -e '/^$/d' tools/packages.txt
}

koine_packages() {
    [ "${KOINE_SKIP_PACKAGES:-0}" = 0 ] || return 0
    if ! koine_has_apt; then
        koine_say "note: no apt here; assuming that the equivalents of tools/packages.txt are installed"
        return 0
    fi
    # shellcheck disable=SC2046 # the names are words
    koine_ensure $(koine_needed_packages)
}

# The major version of the installed clang, or of the one that the package would install.
koine_clang_version() {
    if command -v clang >/dev/null 2>&1; then
        clang --version | sed -n 's/.*clang version \([0-9]*\).*/\1/p'
    else
        apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p'
    fi
}

# The packages of tools/packages.txt that are needed with tests or with ptxas.
koine_packages_with() { sed -n -e "s/^\([^#[:space:]]*\)[[:space:]]*with $1:.*/\1/p" tools/packages.txt; }

# Packages needed only for tests: some always, some where NVIDIA's assembler is. Without them their tests are missing or
# skipped; it is not an error.
koine_test_packages() {
    [ "${KOINE_SKIP_PACKAGES:-0}" = 0 ] && koine_has_apt || return 0
    # shellcheck disable=SC2046 # the names are words
    (koine_ensure $(koine_packages_with tests)) ||
        koine_say "note: without these packages groups over MPI are not tested"
    python3 tools/gpu-code.py --ptxas >/dev/null || return 0 # where the test looks
    # shellcheck disable=SC2046
    (koine_ensure $(koine_packages_with ptxas | sed "s/CLANG/$(koine_clang_version)/")) ||
        koine_say "note: without these packages test_gpu_code is skipped"
}

# Installs missing packages, or ends the script and says how to install them.
koine_ensure() { # koine_ensure NAME...
    missing=$(koine_missing_of "$@")
    [ -n "$missing" ] || return 0
    missing=${missing% }
    by_hand="apt-get update && apt-get install --no-install-recommends -y $missing"
    if ! koine_find_root; then
        koine_say "error: these packages are missing: $missing"
        koine_say "This user is not root and cannot use sudo. As root, run"
        koine_say "    $by_hand"
        koine_say "and then this script again (or set KOINE_SKIP_PACKAGES=1 if you have installed them by other means)."
        exit 1
    fi
    koine_say "Installing: $missing"
    # A fresh container has no package lists; an older machine may have stale ones, so a failed installation is retried
    # with new lists.
    lists_are_new=no
    if ! ls "${KOINE_APT_LISTS:-/var/lib/apt/lists}"/*Packages* >/dev/null 2>&1; then
        koine_apt_get update -qq && lists_are_new=yes
    fi
    # shellcheck disable=SC2086 # the names are words
    koine_install $missing && return 0
    # shellcheck disable=SC2086
    [ $lists_are_new = no ] && koine_apt_get update -qq && koine_install $missing && return 0
    koine_die "apt-get could not install: $missing
As root, try: $by_hand"
}

# koine_configure [CMAKE ARGUMENT...]
koine_configure() {
    [ -f "$koine_build_dir/build.ninja" ] || set -- -G Ninja -DCMAKE_BUILD_TYPE=Release "$@"
    cmake -S . -B "$koine_build_dir" "$@" >&2 || koine_die "CMake could not configure the build"
}

# koine_build [TARGET...]: configures once (Ninja configures again if a file list or a CMake file changes) and builds.
# shellcheck disable=SC2120 # without targets: all of them
koine_build() {
    [ -f "$koine_build_dir/build.ninja" ] || koine_configure
    cmake --build "$koine_build_dir" --parallel "$koine_jobs" ${1:+--target "$@"} >&2 || koine_die "the build failed"
}

# Warns about a GPU with an incomplete driver, since the CPU would be used silently. Never fails.
koine_check_drivers() {
    "$koine_build_dir/bin/koine" doctor --system --quiet >&2 || true
}
