"""profile(), which takes CUPTI over as Kineto does, and counts the kernels that it is told of.

What Kineto leaves behind is left here too: the subscription, a clock that is not the system's, and one
buffer for all threads.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_size_t, c_uint32, c_uint8, c_void_p

_BUFFER_BYTES = 1 << 20
_KINDS = {'MEMCPY': 1, 'MEMSET': 2, 'DRIVER': 4, 'RUNTIME': 5, 'CONCURRENT_KERNEL': 10}
_FLUSH_FORCED = 1
_PER_THREAD_ACTIVITY_BUFFER = 9

_REQUEST = CFUNCTYPE(None, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_size_t))
_COMPLETE = CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t, c_size_t)
_CALLBACK = CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_void_p)


class profile:
    def __init__(self):
        self.kernels = 0
        self.subscribe_result = None
        self._buffers = {}

    def __enter__(self):
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self):
        self._cupti = ctypes.CDLL('libcupti.so.13')
        self._subscriber = c_void_p()
        self._functions = _REQUEST(self._request), _COMPLETE(self._complete), _CALLBACK(lambda *_: None)
        self.subscribe_result = self._cupti.cuptiSubscribe(
            byref(self._subscriber), self._functions[2], None)
        self._cupti.cuptiActivityRegisterCallbacks(*self._functions[:2])
        self._cupti.cuptiActivityRegisterTimestampCallback(ctypes.CDLL(None).clock)

    def _start_trace(self):
        for kind in _KINDS.values():
            self._cupti.cuptiActivityEnable(kind)

    def __exit__(self, *_):
        for kind in _KINDS.values():
            self._cupti.cuptiActivityDisable(kind)
        self._cupti.cuptiActivityFlushAll(_FLUSH_FORCED)
        self._cupti.cuptiActivitySetAttribute(
            _PER_THREAD_ACTIVITY_BUFFER, byref(c_size_t(1)), byref(c_uint8(0)))

    def _request(self, buffer, size, max_records):
        data = (c_uint8 * _BUFFER_BYTES)()
        self._buffers[ctypes.addressof(data)] = data
        buffer[0] = ctypes.addressof(data)
        size[0] = _BUFFER_BYTES
        max_records[0] = 0

    def _complete(self, _context, _stream, buffer, _size, valid):
        if buffer not in self._buffers:  # of another tool
            return
        record = c_void_p()
        while self._cupti.cuptiActivityGetNextRecord(
                c_void_p(buffer), c_size_t(valid), byref(record)) == 0:
            self.kernels += c_uint32.from_address(record.value).value == _KINDS['CONCURRENT_KERNEL']
