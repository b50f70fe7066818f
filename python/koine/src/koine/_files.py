"""Files for as long as a block runs: the library reads and writes paths."""
import contextlib
import os
import tempfile


@contextlib.contextmanager
def temporary_file(name='file'):
    """The path of a file of that name, which is not there yet."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, name)
