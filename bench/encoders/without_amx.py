"""Runs a command in which no process gets AMX, as on a processor without it: without_amx.py COMMAND [ARGUMENT ...]

Programs ask the Linux kernel before they use AMX (https://docs.kernel.org/arch/x86/xstate.html). Here a seccomp filter
refuses that question, to voxgate and onnxruntime alike; both then compute with AVX-512 VNNI, or what else there is.
"""
import ctypes
import os
import struct
import sys

ARCH_PRCTL, REQUEST_PERMISSION = 158, 0x1023  # of x86-64
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x00050000 | 1, 0x7FFF0000  # with EPERM
# Each is an operation, the jumps where it is true and where not, and a number.
FILTER = [
    (LOAD, 0, 0, 0),  # the system call
    (JUMP_IF_EQUAL, 0, 3, ARCH_PRCTL),
    (LOAD, 0, 0, 16),  # its first argument
    (JUMP_IF_EQUAL, 0, 1, REQUEST_PERMISSION),
    (RETURN, 0, 0, REFUSE),
    (RETURN, 0, 0, ALLOW),
]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


if __name__ == "__main__":
    system = ctypes.CDLL(None, use_errno=True)
    steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in FILTER))
    program = Program(len(FILTER), ctypes.addressof(steps))
    if system.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or system.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        sys.exit(f"The filter was refused: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])
