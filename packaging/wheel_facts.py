#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads finished wheels, and archives of the program, and prints what is inside: tags, sizes, the
libraries that each binary needs, and for macOS the oldest system and the signature. It ends with exit code 1 if

- a binary needs OpenMP, or a library that the system does not bring,
- a binary is for another CPU than the name of the wheel says,
- a module for macOS on arm64 has no signature, or one whose checksums are not those of its bytes,
- a binary for glibc has a memcpy of its own, which is slower: zig links it with the first function of its
  run-time library that the code needs (of 128-bit integers, for example),
- a program of an archive needs any library, has names for a debugger, or has 10 MB or more.

    wheel_facts.py WHEEL|ARCHIVE..

It needs pyelftools (which auditwheel brings) for Linux and pefile (which delvewheel brings) for Windows.
"""
import hashlib
import io
import os
import re
import struct
import sys
import tarfile
import zipfile

# What each system brings. Other libraries are loaded when they are needed.
BROUGHT = re.compile(
    r"(libc|libm|libdl|libpthread|librt)\.so(\.6|\.2|\.0|\.1)?|ld-linux-[a-z0-9-]+\.so\.[12]|libc\.musl-\w+\.so\.1"
    r"|/usr/lib/libSystem\.B\.dylib"
    r"|python3\.dll|(kernel32|ntdll|advapi32|bcrypt|user32|shell32|psapi|synchronization|ws2_32"
    r"|api-ms-win-[a-z0-9-]+)\.dll", re.I)
OPENMP = re.compile(rb"GOMP_parallel|__kmpc_fork_call|omp_get_num_threads|libgomp|libomp")


class Wrong(Exception):
    """Something in a wheel that must not be there."""


def of_elf(data):
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    elf = ELFFile(io.BytesIO(data))
    needs = [tag.needed for section in elf.iter_sections() if isinstance(section, DynamicSection)
             for tag in section.iter_tags("DT_NEEDED")]
    cpu = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}.get(elf["e_machine"], elf["e_machine"])
    if "libc.so.6" in needs and not elf.get_section_by_name(".dynsym").get_symbol_by_name("memcpy"):
        raise Wrong("it takes no memcpy from libc.so.6, so it has one of its own, which is slower")
    return cpu, needs, []


def of_pe(data):
    import pefile
    pe = pefile.PE(data=data)
    needs = [entry.dll.decode() for entry in getattr(pe, "DIRECTORY_ENTRY_IMPORT", [])]
    cpu = {0x8664: "amd64", 0xAA64: "arm64"}.get(pe.FILE_HEADER.Machine, hex(pe.FILE_HEADER.Machine))
    return cpu, needs, []


def check_signature(data, at):
    """An ad-hoc signature: it names nobody, and has a checksum of each page of the file."""
    magic, _, count = struct.unpack_from(">3I", data, at)
    if magic != 0xFADE0CC0:
        raise Wrong(f"the signature begins with {magic:#x}; it must begin with 0xfade0cc0")
    blobs = [struct.unpack_from(">2I", data, at + 12 + 8 * i) for i in range(count)]
    folder = at + next(offset for kind, offset in blobs if kind == 0)
    magic, _, _, flags, hashes, _, _, slots, limit, size, kind, _, page = struct.unpack_from(">9I4B", data, folder)
    if magic != 0xFADE0C02 or not flags & 2 or (size, kind) != (32, 2):
        raise Wrong(f"the signature is not ad hoc with SHA-256: magic {magic:#x}, flags {flags:#x}, kind {kind}")
    if limit != at or slots != -(-limit >> page):
        raise Wrong(f"the signature covers {limit} bytes in {slots} pages; {at} bytes are before it")
    for i in range(slots):
        own = hashlib.sha256(data[i << page:min((i + 1) << page, limit)]).digest()
        if own != data[folder + hashes + 32 * i:folder + hashes + 32 * (i + 1)]:
            raise Wrong(f"page {i} of {slots} has another checksum than the signature says")
    return f"ad-hoc signature of {slots} pages is right"


def of_macho(data):
    _, cpu, _, _, count, _, _ = struct.unpack_from("<7I", data, 0)
    cpu = {0x0100000C: "arm64", 0x01000007: "x86_64"}.get(cpu, hex(cpu))
    needs, more, signature, at = [], [], None, 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        if command in (0xC, 0x80000018, 0x8000001F):  # a library: needed, weak, exported again
            offset, = struct.unpack_from("<I", data, at + 8)
            needs.append(data[at + offset:at + size].split(b"\0")[0].decode())
        elif command == 0x32:  # the oldest system
            _, oldest = struct.unpack_from("<2I", data, at + 8)
            more.append(f"macOS {oldest >> 16}.{oldest >> 8 & 255} or later")
        elif command == 0x1D:
            signature, _ = struct.unpack_from("<2I", data, at + 8)
        at += size
    if signature is not None:
        more.append(check_signature(data, signature))
    elif cpu == "arm64":
        raise Wrong("there is no signature; macOS on arm64 loads no code without one")
    else:
        more.append("no signature; x86-64 needs none")
    return cpu, needs, more


READERS = {b"\x7fELF": of_elf, b"MZ\x90\0": of_pe, b"MZ\x78\0": of_pe, b"\xcf\xfa\xed\xfe": of_macho}


def files_of(path):
    """The names and bytes of the files in a wheel or an archive."""
    if path.endswith(".whl"):
        with zipfile.ZipFile(path) as wheel:
            return [(name, wheel.read(name)) for name in wheel.namelist()]
    with tarfile.open(path) as archive:
        return [(member.name, archive.extractfile(member).read()) for member in archive if member.isfile()]


def check_alone(name, data, needs):
    """A program of an archive needs nothing but the kernel, and is small."""
    if needs:
        raise Wrong(f"{name} needs {', '.join(needs)}; it must be static")
    if b".symtab\0" in data:
        raise Wrong(f"{name} has names for a debugger; link it with -s")
    if len(data) >= 10 << 20:
        raise Wrong(f"{name} has {len(data)} bytes; it must have less than {10 << 20}")


def facts(path):
    """The lines for a wheel or an archive."""
    name = os.path.basename(path)
    is_wheel = name.endswith(".whl")
    tag = name.removesuffix(".whl").split("-", 2)[2] if is_wheel else name.split(".tar")[0]
    lines = [f"{name}: {os.path.getsize(path)} bytes"]
    found = 0
    for name, data in files_of(path):
        reader = READERS.get(data[:4])
        if reader is None:
            continue
        found += 1
        cpu, needs, more = reader(data)
        if not any(t.endswith(cpu) for t in tag.split(".")):
            raise Wrong(f"{name} is for {cpu}, its name says {tag}")
        others = [n for n in needs if not BROUGHT.fullmatch(n)]
        if others:
            raise Wrong(f"{name} needs {', '.join(others)}")
        if OPENMP.search(data):
            raise Wrong(f"{name} has OpenMP")
        if not is_wheel:
            check_alone(name, data, needs)
        lines.append(f"  {name}: {len(data)} bytes, {cpu}, needs {', '.join(needs) or 'nothing'}"
                     + "".join(f"; {m}" for m in more))
    if not found:
        raise Wrong("there is no binary in it")
    return lines


def main():
    if len(sys.argv) < 2:
        raise SystemExit("usage: wheel_facts.py WHEEL|ARCHIVE..")
    for path in sys.argv[1:]:
        try:
            print("\n".join(facts(path)))
        except Wrong as wrong:
            raise SystemExit(f"{path}: {wrong}") from None


main()
