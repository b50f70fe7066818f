"""States of optimizers and schedules as dictionaries. The library reads and writes files."""
import contextlib
import os
import tempfile


@contextlib.contextmanager
def state_file():
    """The path of a file for as long as the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, 'state_dict')
