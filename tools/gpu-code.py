#!/usr/bin/env python3
"""Shows a kernel's machine code for NVIDIA GPUs, without one: registers, spills, and the instructions of each loop.

    python3 tools/gpu-code.py [--arch 90] [--kernel NAME] cl/FOLDER/FILE.cl -DT=float [MORE OPTIONS]

The options are those that the host passes, listed as "Compiled in" at the top of each kernel file, without KN_CPU.
clang compiles the kernel to PTX, ptxas assembles it, nvdisasm disassembles the result; NVIDIA's own OpenCL compiler may
differ in details. Requires clang and libclc (Debian: clang, libclc-15), ptxas and nvdisasm (from CUDA, or the packages
nvidia-cuda-nvcc-cu12 and nvidia-cuda-nvdisasm of PyPI); KOINE_CLANG, KOINE_LIBCLC, KOINE_PTXAS and KOINE_NVDISASM
override their paths.

How to read it: a multiprocessor issues four instructions per clock, one per scheduler, each for 32 work-items. The
share of FFMA (HMMA) among a loop's instructions limits the share of the peak that it can reach; the loads (LDG) of one
iteration, times the resident work-items (65536 registers), are the bytes in flight.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile


def find(variable, names):
    for name in [os.environ.get(variable)] + names:
        path = name and (shutil.which(name) or (name if os.path.exists(name) else None))
        if path:
            return path
    sys.exit(f"gpu-code.py: none of {', '.join(names)} is installed; set {variable} to its path")


def run(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(result.stderr[:4000] or f"gpu-code.py: {command[0]} failed")
    return result


def compile_kernel(source, options, arch, folder):
    """The disassembled machine code, and ptxas's output about registers and spills."""
    clang = find("KOINE_CLANG", ["clang-14", "clang", "clang-15", "clang-16"])
    library = find("KOINE_LIBCLC", ["/usr/lib/clc/nvptx64--nvidiacl.bc", "/usr/share/clc/nvptx64--nvidiacl.bc"])
    ptx, cubin = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cl")
    run([clang, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-target", "nvptx64--nvidiacl", "-Xclang", "-target-feature", "-Xclang", "+ptx70",
         f"-march=sm_{min(arch, 80)}", "-O3", "-S", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", library, "-Wno-unused-command-line-argument", "-I" + root,
         "-DKN_ASM=__asm__", *options, "-o", ptx, source])
    said = run([find("KOINE_PTXAS", ["ptxas", "/usr/local/cuda/bin/ptxas"]), f"-arch=sm_{arch}", "-v", ptx, "-o", cubin]).stderr
    text = run([find("KOINE_NVDISASM", ["nvdisasm", "/usr/local/cuda/bin/nvdisasm"]), "-c", cubin]).stdout
    return text, said


def read_usage(said):
    """For each kernel its registers and bytes of spills."""
    usage, kernel = collections.defaultdict(dict), None
    for line in said.splitlines():
        named = re.search(r"(?:Compiling entry function|Function properties for) '?(\w+)", line)
        kernel = named.group(1) if named else kernel
        if spills := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            usage[kernel]["spills"] = int(spills.group(1)) + int(spills.group(2))
        if used := re.search(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?", line):
            usage[kernel].update(registers=int(used.group(1)), local=int(used.group(2) or 0))
    return usage


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
    width = [p for p in parts[1:] if re.fullmatch(r"U?\d+", p)] if parts[0] in ("LDG", "STG", "LDS", "STS", "LDL", "STL") else []
    return ".".join(parts[:1] + width)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", type=int, default=90, help="compute capability, times 10 (90)")
    parser.add_argument("--kernel", help="show only this kernel")
    parser.add_argument("source")
    arguments, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        text, said = compile_kernel(arguments.source, options, arguments.arch, folder)
    usage = read_usage(said)
    for section in re.split(r"\n\.text\.", text)[1:]:
        kernel = re.match(r"\w+", section).group(0)
        if arguments.kernel and arguments.kernel != kernel:
            continue
        names, loops = read_instructions(section)
        used = usage[kernel]
        print(f"{kernel}: {used.get('registers')} registers, {used.get('spills')} bytes of spills, {used.get('local')} bytes of local memory, {len(names)} instructions")
        for first, last in loops:
            inner = not any(other != (first, last) and first <= other[0] and other[1] <= last for other in loops)
            counts = collections.Counter(short(name) for name in names[first:last + 1]).most_common(14)
            print(f"  {'loop' if inner else 'outer loop'} of {last - first + 1}: " + ", ".join(f"{n} {name}" for name, n in counts))


if __name__ == "__main__":
    main()
