# shellcheck shell=sh
# drivers/get.sh - sourced by tests/drivers.sh: for each driver, get_NAME fetches it into build/drivers, or sets
# `reason` and fails; with_NAME COMMAND... runs a command that sees only this driver. Downloads come from where pip and
# apt are configured to look.
# shellcheck disable=SC2034,SC2154 # drivers, reason: for drivers.sh; mode, koine_build_dir: from there
drivers='pocl intel pocl-trixie rusticl oclgrind'
folder=$koine_build_dir/drivers

unavailable() { reason=$*; return 1; }

# has PROGRAM PACKAGE: installs it if it may.
has() {
    command -v "$1" >/dev/null 2>&1 && return 0
    [ "${KOINE_SKIP_PACKAGES:-0}" = 0 ] && koine_has_apt && (koine_ensure "$2") && return 0
    unavailable "$1 is not installed"
}

# --- PoCL of this machine ---------------------------------------------------------------------------------------------

pocl_icd() { find /etc/OpenCL/vendors -name 'pocl*.icd' 2>/dev/null | head -n 1; }
get_pocl() { [ -n "$(pocl_icd)" ] || unavailable "no PoCL is registered in /etc/OpenCL/vendors"; }
with_pocl() { OCL_ICD_VENDORS=$(pocl_icd) "$@"; }

# --- Intel's driver for CPUs, from PyPI -------------------------------------------------------------------------------

# Proprietary: it is fetched for these tests, never shipped. It brings a loader of its own, which must not be used.
get_intel() {
    intel=$PWD/$folder/intel
    [ ! -f "$intel/vendors/intel.icd" ] || return 0
    [ "$(uname -m)" = x86_64 ] || { unavailable "only for x86-64"; return; }
    mkdir -p "$intel/wheels" "$intel/vendors" "$intel/lib"
    python3 -m pip download -q --no-deps -d "$intel/wheels" intel-opencl-rt intel-cmplr-lib-rt tbb tcmlib >&2 ||
        { unavailable "pip cannot download intel-opencl-rt"; return; }
    for wheel in "$intel"/wheels/*.whl; do
        python3 -m zipfile -e "$wheel" "$intel/unpacked" || { unavailable "$wheel cannot be unpacked"; return; }
    done
    mv "$intel"/unpacked/*.data/data/lib/* "$intel/lib"
    rm -rf "$intel/unpacked" "$intel/lib"/libOpenCL.so*
    echo "$intel/lib/libintelocl.so" >"$intel/vendors/intel.icd"
}
with_intel() {
    OCL_ICD_VENDORS=$intel/vendors LD_LIBRARY_PATH=$intel/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

# --- drivers of Debian 13, in a root folder ---------------------------------------------------------------------------

# Where apt finds Debian's packages; nothing on other distributions, where debootstrap has its default.
debian_mirror() {
    # shellcheck disable=SC2016 # apt's variables
    apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n '/security/d; s/^Debian main //p' | head -n 1
}

get_trixie() {
    trixie=$PWD/$folder/trixie
    [ "$(id -u)" = 0 ] || { unavailable "a root folder of Debian 13 can be made by root only"; return; }
    unshare --mount true 2>/dev/null || { unavailable "this container may not mount folders"; return; }
    [ ! -f "$trixie/ready" ] || return 0
    has debootstrap debootstrap || return
    mkdir -p "$trixie"
    if [ ! -x "$trixie/root/usr/bin/apt-get" ]; then
        rm -rf "$trixie/root"
        eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
        http_proxy=${http_proxy-} debootstrap --variant=minbase --include=ca-certificates trixie "$trixie/root" \
            "$(debian_mirror)" >"$trixie/debootstrap.log" 2>&1 ||
            { rm -rf "$trixie/root"; unavailable "debootstrap failed: $trixie/debootstrap.log"; return; }
    fi
    apt-config dump | grep '^Acquire::.*Proxy' >"$trixie/root/etc/apt/apt.conf.d/90proxy" || true
    cp /etc/resolv.conf "$trixie/root/etc/resolv.conf"
    # shellcheck disable=SC2046 # the names are words
    in_trixie env DEBIAN_FRONTEND=noninteractive apt-get install --no-install-recommends -y -qq \
        $(koine_needed_packages) $(koine_packages_with tests) mesa-opencl-icd >"$trixie/install.log" 2>&1 ||
        { unavailable "apt-get failed: $trixie/install.log"; return; }
    : >"$trixie/ready"
}
# Mounts are in a namespace of their own, and end with it.
in_trixie() { unshare --mount sh tests/drivers/enter.sh "$trixie/root" "$@"; }

get_pocl_trixie() { get_trixie; }
with_pocl_trixie() { in_trixie env OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd "$@"; }

get_rusticl() { get_trixie; }
with_rusticl() { in_trixie env RUSTICL_ENABLE=llvmpipe OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd "$@"; }

# --- Oclgrind ---------------------------------------------------------------------------------------------------------

get_oclgrind() {
    [ "$mode" = quick ] || { unavailable "Oclgrind is too slow for the suite: --quick"; return; }
    has oclgrind oclgrind
}
with_oclgrind() { "$@"; } # check.sh calls it
