"""Well-known networks: docs/models.md. koine.models.resnet18(num_classes=10), or by name: new('resnet18')."""
from ._bind import Binding
from ._c import ffi, lib, text
from .nn.module import root

_LINE = 'num_classes=1000, in_channels=3, dropout=None, stochastic_depth=None, small_images=False, image_size=None'
_OWN = {
    'vit': ('kn_models_vit_with', 'image_size=224, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, '
            'mlp_dim=3072, dropout=0.0, attention_dropout=0.0, num_classes=1000, in_channels=3'),
    'gpt2': ('kn_models_gpt2_with', 'vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12, '
             'dropout=0.1'),
    'bert': ('kn_models_bert_with', 'vocab_size=30522, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, '
             'intermediate_size=3072, max_position_embeddings=512, type_vocab_size=2, dropout=0.1'),
    'lstm_classifier': ('kn_models_lstm_classifier_with', 'vocab_size, num_classes=2, embedding_dim=128, '
                        'hidden_size=256, num_layers=1, bidirectional=False, dropout=0.0, padding_idx=None'),
}


def names():
    """The names that new() takes."""
    found = []
    while lib.kn_models_name(len(found)):
        found.append(text(lib.kn_models_name(len(found))))
    return found


def _made(make, arguments, keywords):
    """The network of make(*arguments, **keywords), which knows how to be made again."""
    def initialise(module, *arguments, **keywords):
        module._adopt(make(*arguments, **keywords))

    module = root(make(*arguments, **keywords))
    module._made_with = initialise, arguments, keywords
    return module


def new(name, *arguments, **keywords):
    return _made(_new, (name, *arguments), keywords)


def _new(*arguments, **keywords):
    return Binding('kn_models_new_with', 'name, ' + _LINE)(arguments, keywords)[0]


def mlp(*sizes):
    """Linear layers between these sizes, with ReLU between them."""
    return _made(_mlp, sizes, {})


def _mlp(*sizes):
    return lib.kn_models_mlp(ffi.new('int64_t[]', list(sizes)), len(sizes))


def _own(name, c_name, line):
    def function(*arguments, **keywords):
        return _made(lambda *arguments, **keywords: Binding(c_name, line)(arguments, keywords)[0], arguments, keywords)

    function.__name__, function.line = name, line
    return function


globals().update({_name: _own(_name, *_row) for _name, _row in _OWN.items()})


def __getattr__(name):
    if name not in names():
        raise AttributeError('koine.models has no %s; it has %s' % (name, ', '.join(names() + list(_OWN))))

    def function(*arguments, **keywords):
        return new(name, *arguments, **keywords)

    function.__name__, function.line = name, _LINE
    return function
