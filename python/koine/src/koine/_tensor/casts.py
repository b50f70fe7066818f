"""Conversions to the dtypes by their names."""


class Casts:
    """Of what has to(dtype=...): tensors and packed sequences of them."""

    __slots__ = ()

    def double(self):
        return self.to(dtype='float64')

    def float(self):
        return self.to(dtype='float32')

    def half(self):
        return self.to(dtype='float16')

    def bfloat16(self):
        return self.to(dtype='bfloat16')

    def long(self):
        return self.to(dtype='int64')

    def short(self):
        return self.to(dtype='int16')

    def char(self):
        return self.to(dtype='int8')

    def byte(self):
        return self.to(dtype='uint8')

    def int(self):
        return self.to(dtype='int32')

    def bool(self):
        return self.to(dtype='bool')
