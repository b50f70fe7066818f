#!/bin/sh
# Builds, tests and measures Koine on a machine with a GPU of any vendor:
#
#     sh tools/gpu-check.sh                     the most important, in less than 10 minutes
#     sh tools/gpu-check.sh --full              and then the rest, an hour or two
#     sh tools/gpu-check.sh --part gemm         one part (of either list)
#
# It goes on after a failed part, and ends with an archive of small text files and what to do with it. PyTorch is not
# needed; if a python3 here has it, for CUDA, ROCm or Intel's XPU, benchmarks are compared with it.
#
#   look        the hardware, its drivers and tools, permissions, containers, PyTorch
#   build       installs or unpacks missing packages, builds
#   devices     what Koine sees: koine devices, koine smi
#   doctor      koine doctor
#   operators   every row of every operator's tests in float32, forward; then the first rows' gradients
#   curve       two epochs of the Fashion-MNIST example: the same losses as on a CPU?
#   bench       the main benchmarks, as a share of the measured peak
#
# and with --full, each within 8 minutes (one that is stopped continues when called again):
#
#   tests       the whole test suite on the GPU
#   training    the full training of the example, and the other example programs
#   networks gemm conv memory
#               all benchmarks of GPU size. Rows are saved in PART.jsonl, and not measured again
#   clblast     CLBlast's products alone
#   limits      launches, copies, start-up
#   big         buffers above a quarter of the memory, a batch that fills it
#   tune tuned  koine tune, and the largest rows after it
#   modes       networks and layers against PyTorch's other modes
#   page        the measurements in the form of docs/performance.md
#
# Options: --continue leaves out parts that are done; --packages FOLDER uses the packages of tools/gpu-bundle.sh, for a
# machine without network; --device NAME names the device (default: the first GPU), --build FOLDER the build folder
# (build-gpu), --reports FOLDER the reports' (reports in the build folder), --peer cuda|xpu|cpu|none what PyTorch runs
# on, --python PYTHON the Python that has it, --jobs N the number of parallel tests, --only PREFIX the benchmarks and
# operators; --dry-run only says what would run.
set -u
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit "${1:-2}"; }
quick="look build devices doctor operators curve bench"
more="tests training networks gemm conv memory clblast limits big tune tuned modes page"

# --- options, handed to the parts by the environment ------------------------------------------------------------------

here=$(pwd) chosen='' full=no continue=no dry=no
: "${check_packages:=}" "${check_device:=}" "${check_build:=build-gpu}" "${check_reports:=}" "${check_peer:=}"
: "${check_pythons:=python3 /usr/bin/python3}" "${check_jobs:=8}" "${check_only:=}"
while [ $# -gt 0 ]; do
    case $1 in
    --full) full=yes ;;
    --continue) continue=yes ;;
    --dry-run) dry=yes ;;
    -h | --help) usage 0 ;;
    --part | --packages | --device | --build | --reports | --peer | --python | --jobs | --only)
        [ $# -ge 2 ] || usage
        case $1 in
        --part) chosen="$chosen $2" ;;
        --packages) check_packages=$(cd "$2" && pwd) || exit 2 ;;
        --device) check_device=$2 ;;
        --build) check_build=$2 ;;
        --reports) check_reports=$2 ;;
        --peer) check_peer=$2 ;;
        --python) check_pythons=$2 ;;
        --jobs) check_jobs=$2 ;;
        --only) check_only="$check_only $2" ;;
        esac
        shift
        ;;
    *) [ "${check_inside:-}" ] && break; echo "gpu-check.sh: $1 is not an option" >&2; usage ;;
    esac
    shift
done
cd "$(dirname "$0")/.." || exit
case $check_build in /*) ;; *) check_build=$PWD/$check_build ;; esac
case $check_reports in '') check_reports=$check_build/reports ;; /*) ;; *) check_reports=$here/$check_reports ;; esac
build=$check_build reports=$check_reports
for part in $chosen; do
    case " $quick $more " in
    *" $part "*) ;;
    *) echo "gpu-check.sh: there is no part $part (parts: $quick $more)" >&2; exit 2 ;;
    esac
done

# --- what the parts share ---------------------------------------------------------------------------------------------

. tools/gpu-check-parts.sh

if [ "${check_inside:-}" ]; then # a single part, under the time limit
    use_packages
    use_device "$1" || exit 1
    "part_$1"
    exit
fi
export check_packages check_device check_build check_reports check_peer check_pythons check_jobs check_only

# The seconds that a part may take. All of the quick ones together end within `whole`.
whole=580
start_of_all=$(date +%s)
limit_of() {
    case $1 in
    look | devices) echo 30 ;;
    build) if is_quick; then echo 300; else echo 480; fi ;;
    doctor) echo 60 ;;
    operators) echo 150 ;;
    curve | bench) echo 120 ;;
    *) echo 480 ;;
    esac
}
is_quick() { [ -z "$chosen" ] && [ $full = no ]; }

# run_part NAME SECONDS: writes reports/NAME.txt and says how it ended; files stay small: of a long one the end.
run_part() {
    start=$(date +%s)
    check_inside=1 check_seconds=$2 timeout -k 10 "$2" sh "$PWD/tools/gpu-check.sh" "$1" \
        >"$reports/$1.txt" 2>&1 </dev/null
    status=$?
    [ "$(wc -c <"$reports/$1.txt")" -lt 200000 ] || {
        tail -c 200000 "$reports/$1.txt" >"$reports/cut" && mv "$reports/cut" "$reports/$1.txt"
    }
    case $status in
    0) outcome="done"; : >"$reports/$1.done" ;;
    124) outcome="stopped at its time limit" ;;
    *) outcome="failed: $(grep -v '^$' "$reports/$1.txt" | tail -n 1 | cut -c 1-200)" ;;
    esac
    say "$1: $outcome ($(($(date +%s) - start)) s)"
}
say() { echo "$*" | tee -a "$reports/summary.txt"; }

parts=$chosen
[ -n "$parts" ] || { parts=$quick && [ $full = no ] || parts="$quick $more"; }
if [ $dry = yes ]; then
    find_peer
    echo "build folder: $build; reports: $reports; packages: ${check_packages:-those of this machine}"
    echo "device: ${check_device:-the first GPU}; PyTorch: $peer_text"
    for part in $parts; do echo "$part, at most $(limit_of "$part") s"; done
    exit 0
fi

mkdir -p "$reports" || exit
[ -n "$chosen" ] || : >"$reports/summary.txt"
failed=
for part in $parts; do
    [ $continue = no ] || [ ! -e "$reports/$part.done" ] || continue
    rm -f "$reports/$part.done"
    seconds=$(limit_of "$part")
    left=$((whole - $(date +%s) + start_of_all))
    is_quick && [ $left -lt "$seconds" ] && seconds=$left
    if [ "$seconds" -lt 5 ]; then
        say "$part: not run, the ten minutes are over: sh tools/gpu-check.sh --part $part"
    else
        run_part "$part" "$seconds"
    fi
    [ -e "$reports/$part.done" ] || failed="$failed $part"
done

# --- the archive ------------------------------------------------------------------------------------------------------

archive=$here/koine-gpu-check.tar.gz
pack=$(mktemp -d) && mkdir "$pack/koine-gpu-check" || exit
for file in "$reports"/*.txt "$reports"/*.json "$reports"/*.jsonl "$reports"/*/history.csv; do
    [ ! -f "$file" ] || sed -e "s|$PWD|SOURCE|g" -e "s|${HOME:-/no-home}/|~/|g" "$file" \
        >"$pack/koine-gpu-check/$(echo "${file#"$reports"/}" | tr / -)"
done
tar -C "$pack" -cf - koine-gpu-check | gzip -9 >"$archive"
rm -r "$pack"
[ -z "$failed" ] || echo "not done:$failed; see $reports"
echo "Please send $archive ($(($(wc -c <"$archive") / 1024 + 1)) KiB: what is installed, results and times, as text)"
echo "to Koine's maintainers, attached to an issue that names the GPU, also if all is well."
[ -z "$failed" ]
