"""Networks for sequences: text, audio, speech."""
import numpy as np

from .samples import Samples, of_output


def recurrent(t, layer):
    nn = t.nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(1000, 128)
            self.layers = layer(128, 256, 2, batch_first=True)
            self.words = nn.Linear(256, 1000)

        def forward(self, x):
            return self.words(self.layers(self.embedding(x))[0]).flatten(0, 1)

    return Recurrent


def convolutional(t):
    nn, F = t.nn, t.nn.functional

    class TextCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(1000, 64)
            self.layers = nn.ModuleList([nn.Conv1d(64, 64, length) for length in (3, 4, 5)])
            self.classes = nn.Linear(192, 5)

        def forward(self, x):
            x = self.embedding(x).transpose(1, 2)
            seen = [F.relu(layer(x)) for layer in self.layers]
            return self.classes(t.cat([F.max_pool1d(one, one.shape[2]).squeeze(2) for one in seen], 1))

    class Audio(nn.Module):
        def __init__(self):
            super().__init__()
            layers = []
            for inputs, outputs in ((1, 16), (16, 32), (32, 64), (64, 64)):
                layers += [nn.Conv1d(inputs, outputs, 9, 4, 4, bias=False), nn.GroupNorm(4, outputs), nn.GELU()]
            self.layers, self.classes = nn.Sequential(*layers), nn.Linear(64, 10)

        def forward(self, x):
            return self.classes(self.layers(x).mean(2))

    class Speech(nn.Module):
        """Spectrograms [batch, 1, frequencies, time] to log probabilities [time, batch, letters], as ctc_loss wants."""

        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
            self.recurrent = nn.LSTM(16 * 20, 128, 2, batch_first=True, bidirectional=True)
            self.letters = nn.Linear(256, 30)

        def forward(self, x):
            x = self.layers(x).permute(0, 3, 1, 2).flatten(2)
            return F.log_softmax(self.letters(self.recurrent(x)[0]), -1).transpose(0, 1)

    return TextCNN, Audio, Speech


def transformers(t):
    nn, F = t.nn, t.nn.functional

    class RMSNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(t.ones(width))

        def forward(self, x):
            return x * t.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    def rotated(x, cosines, sines):
        a, b = x.chunk(2, -1)
        return t.cat([a * cosines - b * sines, a * sines + b * cosines], -1)

    class LlamaBlock(nn.Module):
        """Rotary positions, fewer heads of keys and values, SwiGLU."""

        def __init__(self, width, heads, key_heads):
            super().__init__()
            self.heads, self.repeats, keys = heads, heads // key_heads, width // heads * key_heads
            self.norm, self.wide_norm = RMSNorm(width), RMSNorm(width)
            self.q, self.k, self.v = (nn.Linear(width, size, bias=False) for size in (width, keys, keys))
            self.out = nn.Linear(width, width, bias=False)
            self.gate, self.up = (nn.Linear(width, width * 8 // 3, bias=False) for _ in range(2))
            self.down = nn.Linear(width * 8 // 3, width, bias=False)

        def forward(self, x, cosines, sines):
            batch, length, width = x.shape
            y = self.norm(x)
            q, k, v = (layer(y).view(batch, length, -1, width // self.heads).transpose(1, 2)
                       for layer in (self.q, self.k, self.v))
            q, k = rotated(q, cosines, sines), rotated(k, cosines, sines)
            k, v = k.repeat_interleave(self.repeats, 1), v.repeat_interleave(self.repeats, 1)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            y = self.wide_norm(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self, words=2000, width=192, heads=6):
            super().__init__()
            self.half = width // heads // 2
            self.embedding = nn.Embedding(words, width)
            self.blocks = nn.ModuleList([LlamaBlock(width, heads, 2) for _ in range(3)])
            self.norm, self.words = RMSNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, x):
            frequencies = 10000.0 ** (-t.arange(self.half, dtype=t.float32) / self.half)
            angles = t.arange(x.shape[1], dtype=t.float32)[:, None] * frequencies[None]
            cosines, sines = angles.cos(), angles.sin()
            y = self.embedding(x)
            for block in self.blocks:
                y = block(y, cosines, sines)
            return self.words(self.norm(y)).flatten(0, 1)

    class Bert(nn.Module):
        def __init__(self, words=4000, width=256, length=64):
            super().__init__()
            self.embedding, self.places = nn.Embedding(words, width), nn.Parameter(t.zeros(length, width))
            self.norm = nn.LayerNorm(width)
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, activation='gelu', batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
            self.words = nn.Linear(width, words)

        def forward(self, x, is_padding):
            x = self.norm(self.embedding(x) + self.places)
            return self.words(self.encoder(x, src_key_padding_mask=is_padding)).flatten(0, 1)

    return Llama, Bert


def architectures(t):
    s, F = Samples(), t.nn.functional
    classes = of_output(F.cross_entropy)
    words, more_words = s.classes(1000, 16, 32), s.classes(2000, 8, 64)
    is_padding = np.zeros((8, 64), bool)
    is_padding[:, 50:] = True

    def ctc(module, inputs, target):
        output = module(*inputs)
        return F.ctc_loss(output, target, t.tensor([output.shape[0]] * output.shape[1]),
                          t.tensor([target.shape[1]] * output.shape[1]))

    text, audio, speech = convolutional(t)
    llama, bert = transformers(t)
    return {
        'lstm': (recurrent(t, t.nn.LSTM), classes, [words], words.reshape(-1)),
        'gru': (recurrent(t, t.nn.GRU), classes, [words], words.reshape(-1)),
        'llama': (llama, classes, [more_words], more_words.reshape(-1)),
        'bert': (bert, classes, [more_words, is_padding], more_words.reshape(-1)),
        'textcnn': (text, classes, [s.classes(1000, 32, 64)], s.classes(5, 32)),
        'audio': (audio, classes, [s.normal(8, 1, 8000)], s.classes(10, 8)),
        'speech': (speech, ctc, [s.normal(4, 1, 80, 200)], s.classes(29, 4, 20) + 1),
    }
