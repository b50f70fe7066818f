"""Networks of koine/models.h beside their originals: how both are made, and one with the weights of the other."""

import ctypes
import os
import sys
import tempfile

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden"))
from golden_file import save_safetensors
from koine_ctypes import BOOL, DOUBLE, I64T, INT, VOID, sizes

CLASSES, VOCABULARY = 11, 301


# --- the parameters of the constructors -------------------------------------------------------------------------------


class Parameters(ctypes.Structure):
    """Fields by their order in the header; `new` takes the library's defaults for what is not given."""

    @classmethod
    def new(cls, k, **values):
        init = getattr(k.lib, cls.FUNCTION + "_params_init")
        init.restype = cls
        params = init()
        for name, value in values.items():
            if name not in dict(cls._fields_):
                raise AttributeError(name)
            setattr(params, name, value)
        return params


class Models(Parameters):
    FUNCTION = "kn_models"
    _fields_ = [("num_classes", I64T), ("in_channels", I64T), ("dropout", DOUBLE), ("stochastic_depth", DOUBLE),
                ("small_images", BOOL), ("image_size", I64T)]


class Gpt2(Parameters):
    FUNCTION = "kn_models_gpt2"
    _fields_ = [("vocab_size", I64T), ("n_positions", I64T), ("n_embd", I64T), ("n_layer", I64T), ("n_head", I64T),
                ("dropout", DOUBLE)]


class Bert(Parameters):
    FUNCTION = "kn_models_bert"
    _fields_ = [("vocab_size", I64T), ("hidden_size", I64T), ("num_hidden_layers", I64T), ("num_attention_heads", I64T),
                ("intermediate_size", I64T), ("max_position_embeddings", I64T), ("type_vocab_size", I64T),
                ("dropout", DOUBLE)]


class LstmClassifier(Parameters):
    FUNCTION = "kn_models_lstm_classifier"
    _fields_ = [("vocab_size", I64T), ("num_classes", I64T), ("embedding_dim", I64T), ("hidden_size", I64T),
                ("num_layers", I64T), ("bidirectional", BOOL), ("dropout", DOUBLE), ("padding_idx", I64T)]


class LoadParams(ctypes.Structure):
    _fields_ = [("strict", BOOL), ("prefix", ctypes.c_char_p), ("keys", VOID)]


class ParameterList(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(VOID)), ("names", ctypes.POINTER(ctypes.c_char_p)), ("count", INT)]


def constructed(k, params):
    """The address of a network made from its parameters' struct."""
    return k.call(params.FUNCTION + "_with", ctypes.byref(params))


def named(k, name, **values):
    return k.call("kn_models_new_with", name.encode(), ctypes.byref(Models.new(k, **values)))


# --- a network of Koine's ---------------------------------------------------------------------------------------------


class Network:
    """A module with the weights of a network of PyTorch's, through a file; free it with `free`."""

    def __init__(self, k, module, state, prefix=None, strict=True):
        self.k, self.module = k, VOID(module)
        k.lib.kn_module_parameters.restype = ParameterList
        k.lib.kn_module_parameter_count.restype = I64T
        k.lib.kn_module_train.restype = k.lib.kn_module_free.restype = k.lib.kn_module_zero_grad.restype = None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            save_safetensors(path, {key: value.contiguous().clone() for key, value in state.items()}, {"format": "pt"})
            k.do("kn_module_load_with", self.module, path.encode(), ctypes.byref(LoadParams(strict, prefix, None)))

    def free(self):
        self.k.lib.kn_module_free(self.module)

    def to_dtype(self, number):
        self.k.do("kn_module_to_dtype", self.module, INT(number))

    def train(self, training):
        self.k.lib.kn_module_train(self.module, BOOL(training))

    def forward(self, *inputs, num_outputs=1):
        """The outputs' addresses; the inputs are tensors of PyTorch's or None."""
        given = [None if x is None else self.k.from_torch(x)[0] for x in inputs]
        outputs = (VOID * num_outputs)()
        self.k.do("kn_forward_many", self.module, (VOID * len(given))(*given), len(given), outputs, num_outputs)
        return list(outputs)

    def parameters(self):
        return self.k.lib.kn_module_parameters(self.module)

    def count(self):
        return self.k.lib.kn_module_parameter_count(self.module)

    def gradients(self):
        found = self.parameters()
        return {found.names[i].decode(): self.k.gradient_of(found.tensors[i]) for i in range(found.count)}


# --- networks that are in no package ----------------------------------------------------------------------------------


class LeNet5(nn.Module):
    def __init__(self, channels=3, classes=CLASSES):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(channels, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2))
        self.avgpool = nn.AdaptiveAvgPool2d(5)
        self.classifier = nn.Sequential(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                                        nn.Linear(84, classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        layers = []
        for before in (inputs, outputs):
            layers += [nn.Conv2d(before, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.double_conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, 2)
        self.conv = DoubleConv(inputs, outputs)

    def forward(self, x, skipped):
        return self.conv(torch.cat([skipped, self.up(x)], 1))


class OutConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """With the names of milesial/Pytorch-UNet."""

    def __init__(self, channels=3, classes=CLASSES):
        super().__init__()
        self.inc = DoubleConv(channels, 64)
        for i in range(4):
            setattr(self, f"down{i + 1}", Down(64 << i, 128 << i))
        for i in range(4):
            setattr(self, f"up{i + 1}", Up(1024 >> i, 512 >> i))
        self.outc = OutConv(64, classes)

    def forward(self, x):
        levels = [self.inc(x)]
        for i in range(4):
            levels.append(getattr(self, f"down{i + 1}")(levels[-1]))
        x = levels.pop()
        for i in range(4):
            x = getattr(self, f"up{i + 1}")(x, levels.pop())
        return self.outc(x)


class LSTMClassifier(nn.Module):
    def __init__(self, vocabulary, embedding, hidden, layers, bidirectional, classes=CLASSES):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.fc = nn.Linear(hidden * (2 if bidirectional else 1), classes)

    def forward(self, tokens, lengths):
        x = nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        h = self.lstm(x)[1][0]
        return self.fc(torch.cat([h[-2], h[-1]], 1) if self.lstm.bidirectional else h[-1])


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def koine_mlp(k):
    return k.call("kn_models_mlp", sizes([48, 32, CLASSES]), INT(3))


# --- networks of packages ---------------------------------------------------------------------------------------------


def torchvision_net(name, **values):
    import torchvision
    return getattr(torchvision.models, name)(num_classes=CLASSES, **values)


def gpt2(**sizes_):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **sizes_))


def bert(**sizes_):
    from transformers import BertConfig, BertModel
    return BertModel(BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0, **sizes_))


def resnet18_for_cifar():
    """A 3x3 stem of stride 1 and no pooling: `small_images`."""
    net = torchvision_net("resnet18")
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
    return net


# --- comparing --------------------------------------------------------------------------------------------------------


def randomised(net):
    """Estimates, biases and scales other than 0 and 1, so that a swap shows; no dropout: masks differ."""
    generator = torch.Generator().manual_seed(1)
    for name, value in net.state_dict().items():
        if name.endswith(("running_mean", "bias", "class_token", "heads.head.weight")):
            value.copy_(0.1 * torch.randn(value.shape, generator=generator))
        if name.endswith("running_var"):
            value.copy_(0.5 + torch.rand(value.shape, generator=generator))
        if name.endswith("layer_scale"):  # 1e-6 would hide the branches
            value.copy_(0.2 * torch.randn(value.shape, generator=generator))
    for module in net.modules():
        if "Dropout" in type(module).__name__ or "StochasticDepth" in type(module).__name__:
            module.p = 0.0
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
    return net


def error(found, expected):
    """The largest difference, relative to the largest value."""
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-6)).item()


def gradient_error(gradients, expected):
    """The largest difference of any gradient, relative to the largest of all; and the names only one side has."""
    scale = max(value.abs().max() for value in expected.values()).item()
    worst = max((gradients[key] - expected[key]).abs().max().item() for key in expected if key in gradients) / scale
    return worst, sorted(set(gradients) ^ set(expected))
