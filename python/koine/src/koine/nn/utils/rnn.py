"""torch.nn.utils.rnn: sequences of different lengths. None are packed: recurrent layers take lengths."""
from ..._bind import tensor_function

pad_sequence = tensor_function('pad_sequence', 'kn_pad_sequence', 'sequences, batch_first=False, padding_value=0.0')
