"""Switches Python stacks on: of CUDA calls when Python starts, and of operators once torch is
imported. The library reads the frames from the interpreter's memory: first it has to see what Python
sees.
"""

import os
import sys
from ctypes import PyDLL, c_char_p, c_int, c_void_p, create_string_buffer

_module_call = None  # the code object that the library looks for stays alive


def _text_of(frame):
    """It and 126 outer ones, as gtrace_inject_stack_text() in injection/inject.h has them."""
    text = ""
    for _ in range(127):
        if frame is None:
            break
        code = frame.f_code
        text += "%d %d %d %d %s %s\n" % (id(code), frame.f_lasti, frame.f_lineno or 0,
                                        code.co_firstlineno, code.co_name, code.co_filename)
        frame = frame.f_back
    return text.encode("utf-8", "surrogatepass")


def _sees_frames(library):
    buffer = create_string_buffer(1 << 18)
    size = library.gtrace_inject_stack_text(buffer, len(buffer))
    if size < 0:
        return None
    # This frame went on meanwhile.
    return buffer.raw[:size].partition(b"\n")[2] == _text_of(sys._getframe(1))


def _directories(torch):
    """What torch.profiler leaves off the names of files."""
    paths = [os.path.abspath(path) for path in sys.path if isinstance(path, str)]
    if torch:
        paths.append(os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__))))
    text = "".join(os.path.join(path, "") + "\n" for path in paths)
    return text.encode("utf-8", "surrogatepass")


def begin(path, torch, of_operators):
    """torch: it, or None as long as it is not there."""
    global _module_call
    library = PyDLL(path)
    function = library.gtrace_inject_stacks_begin
    function.argtypes = [c_int, c_char_p, c_void_p, c_int]
    # Through C code and a generator, which have frames of other kinds.
    equal = max(_sees_frames(library) for _ in "1")
    if equal is None:  # the library knows why
        return
    if of_operators:
        cls = torch.nn.Module
        _module_call = (getattr(cls, "_wrapped_call_impl", None) or cls._call_impl).__code__
    function(equal, _directories(torch), _module_call and id(_module_call), of_operators)
