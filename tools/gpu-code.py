#!/usr/bin/env python3
"""Compiles kernels for GPUs, without one.

    python3 tools/gpu-code.py [--target sm_90] [--kernel NAME] cl/FOLDER/FILE.cl -DT=float [MORE OPTIONS]

shows one program for one target: registers, spills, local memory, and, for NVIDIA, the instructions of each loop. The
options are those that the host passes, listed as "Compiled in" at the top of each kernel file, without KN_CPU.

    python3 tools/gpu-code.py --folder FOLDER [--target NAME]... [--table FILE]

checks all programs of a folder: files whose first line is a comment with the options (tests/support/record_programs.c
and tests/ops/gpu_programs.c write such). A program that does not compile for a target, has a warning, or spills
registers, is an error; --table writes a line for each kernel and target.

    python3 tools/gpu-code.py --ptxas

prints where NVIDIA's assembler is; exit status 1 if there is none.

Targets: sm_75 and others, NVIDIA's processors (clang makes PTX, ptxas assembles it; NVIDIA's own OpenCL compiler may
differ in details); gfx90a and others, AMD's; spir64, the intermediate language for Intel's driver, of which only the
warnings are of interest: those of a compiler for a device without float64 and float16, unless the program asks for
float64. By default those that the tools here know, of ALL below.

Requires clang and libclc (Debian: clang, libclc-14); for NVIDIA ptxas and, for loops, nvdisasm (from CUDA, or the
packages nvidia-cuda-nvcc-cu12 and nvidia-cuda-nvdisasm of PyPI). KOINE_CLANG, KOINE_LIBCLC (a folder), KOINE_PTXAS and
KOINE_NVDISASM override their paths.

How to read loops: a multiprocessor issues four instructions per clock, one per scheduler, each for 32 work-items. The
share of FFMA (HMMA) among a loop's instructions limits the share of the peak that it can reach; the loads (LDG) of one
iteration, times the resident work-items (65536 registers), are the bytes in flight.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ALL = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120", "gfx90a", "gfx1030", "gfx1100", "spir64"]
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cl")
OLDEST_CLANG = {"gfx1100": 16}  # version 15 gives it 128 of its 256 registers
NEWEST_PTX = 80  # what the oldest clang in use can make; ptxas assembles it for newer processors, too

# Bytes of spills that are no error: AMD's drivers have a compiler and functions of their own, which spill elsewhere.
FEW = {"sm": 0, "gfx": 128}

Kernel = collections.namedtuple("Kernel", "name registers spills local")


class Failed(Exception):
    """The compiler's message."""


# --- the tools --------------------------------------------------------------------------------------------------------

def find(variable, names):
    own = os.environ.get(variable)
    for name in [own] if own else names:
        path = shutil.which(name) or (name if os.path.exists(name) else None)
        if path:
            return path
    return None


def find_cuda(variable, name):
    """Next to nvcc, which may be a link or a script elsewhere, or where CUDA is usually installed."""
    nvcc = shutil.which("nvcc")
    beside = [os.path.join(os.path.dirname(os.path.realpath(nvcc)), name)] if nvcc else []
    usual = [os.path.join(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "bin", name)]
    usual += sorted(glob.glob(f"/usr/local/cuda-*/bin/{name}"), reverse=True) + [f"/opt/cuda/bin/{name}"]
    usual += glob.glob(f"/usr/lib/nvidia-cuda-toolkit/bin/{name}")
    return find(variable, [name] + beside + usual)


def find_ptxas():
    return find_cuda("KOINE_PTXAS", "ptxas")


def all_clangs():
    names = [os.environ["KOINE_CLANG"]] if os.environ.get("KOINE_CLANG") else ["clang-14", "clang"]
    names += [] if os.environ.get("KOINE_CLANG") else [f"clang-{version}" for version in range(15, 23)]
    return [path for path in map(shutil.which, names) if path]


def version_of(clang):
    return int(run([clang, "-dumpversion"]).stdout.split(".")[0])


def find_library(name):
    return find("", [os.path.join(folder, name) for folder in
                     [os.environ.get("KOINE_LIBCLC") or "/usr/lib/clc", "/usr/share/clc"]])


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failed((result.stderr or result.stdout)[:4000] or f"{command[0]} failed")
    return result


OPENCL = ["-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-I" + ROOT,
          "-Wno-unused-command-line-argument"]


def is_nvidia(target):
    return target.startswith("sm_")


class Tools:
    """What is installed here, and for each target the clang that knows it."""

    def __init__(self):
        self.clangs, self.ptxas = all_clangs(), find_ptxas()
        self.of_target = {}

    def missing(self, target):
        """What this target lacks here; None if it can be compiled for."""
        if not self.clangs:
            return "there is no clang"
        if is_nvidia(target) and not self.ptxas:
            return "there is no ptxas"
        if target != "spir64" and not find_library(self.library_name(target)):
            return f"there is no {self.library_name(target)} of libclc"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "probe.cl")
            with open(path, "w", encoding="ascii") as file:
                file.write("kernel void probe(global float *x) { x[get_global_id(0)] = fma(x[0], x[1], x[2]); }\n")
            oldest = OLDEST_CLANG.get(target, 0)
            said = [f"it takes clang {oldest}"]
            for clang in self.clangs:
                if version_of(clang) < oldest:
                    continue
                self.of_target[target] = clang
                try:
                    compile_program(self, path, [], target, folder)
                    return None
                except Failed as error:
                    said = str(error).splitlines()
        return f"no compiler here knows it ({said[0] if said else 'no message'})"

    @staticmethod
    def library_name(target):
        return "nvptx64--nvidiacl.bc" if is_nvidia(target) else "amdgcn--amdhsa.bc"


# --- one program for one target ---------------------------------------------------------------------------------------

def make_code(tools, source, options, target, folder):
    """Assembly: PTX, or AMD's."""
    path = os.path.join(folder, "kernel.s")
    machine = ["-target", "amdgcn--amdhsa", "-mcpu=" + target, "-nogpulib"]
    if is_nvidia(target):
        machine = ["-target", "nvptx64--nvidiacl", "-Xclang", "-target-feature", "-Xclang", "+ptx70",
                   "-Xclang", "-cl-ext=+cl_khr_fp16",  # for vload_half
                   f"-march=sm_{min(int(target[3:]), NEWEST_PTX)}", "-DKN_ASM=__asm__"]
    run([tools.of_target[target], *OPENCL, *machine, "-O3", "-S", "-Xclang", "-mlink-builtin-bitcode", "-Xclang",
         find_library(tools.library_name(target)), "-w", *options, "-o", path, source])
    return path


def read_ptxas(said):
    """The kernels of ptxas's output."""
    usage, kernel = collections.defaultdict(dict), None
    for line in said.splitlines():
        named = re.search(r"(?:Compiling entry function|Function properties for) '?(\w+)", line)
        kernel = named.group(1) if named else kernel
        if spills := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            usage[kernel]["spills"] = int(spills.group(1)) + int(spills.group(2))
        if used := re.search(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?", line):
            usage[kernel].update(registers=int(used.group(1)), local=int(used.group(2) or 0))
    return [Kernel(name, u["registers"], u.get("spills", 0), u["local"])
            for name, u in usage.items() if "registers" in u]


def read_amd(text):
    """The kernels of the metadata at the end of AMD's assembly. A spilled register has 4 bytes for each work-item."""
    kernels = []
    metadata = text[text.rfind("amdhsa.kernels:"):]
    for part in re.split(r"\n  - ", metadata)[1:]:
        number = {key: int(value) for key, value in re.findall(r"\.(\w+): +(\d+)\n", part)}
        name = re.search(r"\.name: +(\w+)\n(?=.*\.private_segment)", part, re.DOTALL)
        if "vgpr_count" in number:
            kernels.append(Kernel(name.group(1) if name else "?", number["vgpr_count"], 4 * number["vgpr_spill_count"],
                                  number["group_segment_fixed_size"]))
    return kernels


def compile_program(tools, source, options, target, folder):
    """Its kernels; Failed if it does not compile, or, for spir64, has a warning."""
    if target == "spir64":
        warn_of(tools.of_target[target], source, options)
        return []
    return assemble(tools, make_code(tools, source, options, target, folder), target)


def assemble(tools, code, target):
    if not is_nvidia(target):
        with open(code, encoding="utf-8") as file:
            return read_amd(file.read())
    said = run([tools.ptxas, "-v", f"-arch={target}", code, "-o", code + "bin"])
    if "cannot be statically determined" in said.stderr:
        raise Failed("a kernel's stack is not bounded: recursion, or a call through a pointer")
    return read_ptxas(said.stdout + said.stderr)


# Not those of signs and of integers converted to float32, which kernels do on purpose everywhere, nor of what a program
# leaves unused, or out of an initializer, of the headers and texts that it is made of.
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wconditional-uninitialized", "-Wvla", "-Wdouble-promotion", "-Wundef",
            "-Wno-sign-conversion", "-Wno-implicit-int-float-conversion", "-Wno-unused-parameter",
            "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-function",
            "-Wno-missing-field-initializers"]
SIZES = "loses integer precision: 'unsigned long' to"  # work-item functions return size_t


def warn_of(clang, source, options):
    """Warnings, and errors on a device without float64. (Without float16 clang lacks vload_half.)"""
    check = [clang, *OPENCL, "-target", "spir64", "-fsyntax-only", *options, source]
    if "-DKN_USE_F64" not in options:
        run([*check, "-w", "-Xclang", "-cl-ext=-cl_khr_fp64"])
    warnings = list(WARNINGS)
    if "-cl-single-precision-constant" in options:
        warnings.append("-Wno-implicit-float-conversion")  # clang warns of constants, which are doubles first
    said = [line for line in run([*check, *warnings]).stderr.splitlines() if "warning:" in line and SIZES not in line]
    if said:
        raise Failed("\n".join(sorted(set(said))))


# --- a folder ---------------------------------------------------------------------------------------------------------

def read_options(path):
    with open(path, encoding="utf-8") as file:
        first, second = file.readline(), file.readline()
    named = re.search(r'"(.*)"', second)
    return first[2:].split(), named.group(1) if named else os.path.basename(path)


def least_capability(options):
    """Inline PTX needs a processor of NVIDIA's that has the instructions; 0: any processor."""
    for option in options:
        if option.startswith("-DPTX="):
            return int(option[6:])
    return 80 if "-DTENSOR_CORES=1" in options else 0


def check_program(tools, path, targets):
    """(target, kernel or None, message or None) for all kernels, and for what failed."""
    options, _ = read_options(path)
    least = least_capability(options)
    own = [target for target in targets if (int(target[3:]) >= least if is_nvidia(target) else least == 0)]
    rows, code = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for target in own:
            level = min(int(target[3:]), NEWEST_PTX) if is_nvidia(target) else target
            try:
                if target == "spir64":
                    warn_of(tools.of_target[target], path, options)
                    continue
                if level not in code:  # one PTX for all processors from NEWEST_PTX on
                    code[level] = make_code(tools, path, options, target, folder)
                few = FEW["sm" if is_nvidia(target) else "gfx"]
                rows += [(target, kernel, f"{kernel.spills} bytes of spills" if kernel.spills > few else None)
                         for kernel in assemble(tools, code[level], target)]
            except Failed as error:
                rows.append((target, None, str(error)))
    return path, rows


def check_folder(tools, arguments, targets):
    paths = sorted(glob.glob(os.path.join(arguments.folder, "*.cl")))
    if not paths:
        sys.exit(f"gpu-code.py: there are no programs in {arguments.folder}")
    failures, seen, table = 0, collections.defaultdict(list), []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for path, rows in pool.map(lambda path: check_program(tools, path, targets), paths):
            options, name = read_options(path)
            for target, kernel, message in rows:
                if kernel:
                    seen[target].append(kernel)
                    table.append((target, kernel, name, " ".join(options)))
                if message:
                    kernel_name = kernel.name if kernel else ""
                    print(f"FAIL {target}: {name} {kernel_name} ({path}: {' '.join(options)})\n{message}")
                    failures += 1
    for target in targets:
        if seen[target]:
            most = max(seen[target], key=lambda kernel: kernel.registers)
            print(f"{target}: {len(seen[target])} kernels, at most {most.registers} registers ({most.name}), "
                  f"{sum(kernel.spills > 0 for kernel in seen[target])} with spills")
    if arguments.table:
        with open(arguments.table, "w", encoding="utf-8") as file:
            file.write("target\tregisters\tspills\tlocal\tkernel\tprogram\toptions\n")
            for target, kernel, name, options in sorted(table, key=lambda r: (r[0], -r[1].spills, -r[1].registers)):
                row = [target, kernel.registers, kernel.spills, kernel.local, kernel.name, name, options]
                file.write("\t".join(map(str, row)) + "\n")
    print(f"{len(paths)} programs, {failures} failures")
    return failures > 0


# --- loops ------------------------------------------------------------------------------------------------------------

def read_instructions(section):
    """The names of the instructions of a section of the disassembly, and its loops as (first, last)."""
    names, labels, jumps = [], {}, []
    for line in section.splitlines():
        if label := re.match(r"\s*(\.L\S*):", line):
            labels[label.group(1)] = len(names)
        elif found := re.search(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+\s+)?(\S+)(.*?);", line):
            if target := re.search(r"`\((\.L\S+?)\)", found.group(2)):
                jumps.append((len(names), target.group(1)))
            names.append(found.group(1))
    loops = [(labels[target], at) for at, target in jumps if labels.get(target, at) < at]
    return names, loops


def short(name):
    """FFMA.FTZ becomes FFMA; memory accesses keep their width."""
    parts = name.split(".")
    is_access = parts[0] in ("LDG", "STG", "LDS", "STS", "LDL", "STL")
    width = [p for p in parts[1:] if re.fullmatch(r"U?\d+", p)] if is_access else []
    return ".".join(parts[:1] + width)


def print_loops(section):
    names, loops = read_instructions(section)
    print(f"  {len(names)} instructions")
    for first, last in loops:
        inner = not any(other != (first, last) and first <= other[0] and other[1] <= last for other in loops)
        counts = collections.Counter(short(name) for name in names[first:last + 1]).most_common(14)
        what = "loop" if inner else "outer loop"
        print(f"  {what} of {last - first + 1}: " + ", ".join(f"{n} {name}" for name, n in counts))


def show(tools, arguments, options, target):
    disassembler = find_cuda("KOINE_NVDISASM", "nvdisasm") if is_nvidia(target) else None
    with tempfile.TemporaryDirectory() as folder:
        kernels = compile_program(tools, arguments.source, options, target, folder)
        code = os.path.join(folder, "kernel.sbin")
        text = run([disassembler, "-c", code]).stdout if disassembler else ""
    sections = {re.match(r"\w+", section).group(0): section for section in re.split(r"\n\.text\.", text)[1:]}
    for kernel in kernels:
        if arguments.kernel in (None, kernel.name):
            print(f"{kernel.name}: {kernel.registers} registers, {kernel.spills} bytes of spills, "
                  f"{kernel.local} bytes of local memory")
            if kernel.name in sections:
                print_loops(sections[kernel.name])
    if is_nvidia(target) and not disassembler:
        print("(no loops: there is no nvdisasm)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", help="a processor, or spir64 (default: sm_90; for a folder: all)")
    parser.add_argument("--kernel", help="show only this kernel")
    parser.add_argument("--folder", help="check all programs of this folder")
    parser.add_argument("--table", help="with --folder: write registers, spills and local memory of all kernels here")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="with --folder: compilers at once")
    parser.add_argument("--ptxas", action="store_true", help="print where ptxas is")
    parser.add_argument("source", nargs="?")
    arguments, options = parser.parse_known_args()
    if arguments.ptxas:
        path = find_ptxas()
        print(path or "there is no ptxas")
        return path is None
    if bool(arguments.folder) == bool(arguments.source):
        parser.error("a source or --folder")
    tools, targets = Tools(), []
    for target in arguments.target or (ALL if arguments.folder else ["sm_90"]):
        missing = tools.missing(target)
        if missing:
            print(f"{target} is left out: {missing}", file=sys.stderr)
        else:
            targets.append(target)
    if not targets:
        print("skipped: no target can be compiled for here")
        return 77
    if arguments.folder:
        return check_folder(tools, arguments, targets)
    try:
        show(tools, arguments, options, targets[0])
    except Failed as error:
        sys.exit(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
