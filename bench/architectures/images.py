"""Networks for images and volumes: convolutions, and attention to patches."""
import math

from .samples import Samples, of_output


def normalized(t, layer, channels, *more):
    return [layer, t.nn.BatchNorm2d(channels), *more]


def convolutional(t):
    """Modules by name."""
    nn, F = t.nn, t.nn.functional

    class UNet(nn.Module):
        def __init__(self, width=16):
            super().__init__()

            def layer(inputs, outputs):
                return normalized(t, nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), outputs, nn.ReLU(True))

            def double(inputs, outputs):
                return nn.Sequential(*layer(inputs, outputs), *layer(outputs, outputs))

            self.down = nn.ModuleList([double(3, width), double(width, 2 * width), double(2 * width, 4 * width)])
            self.up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                                     nn.ConvTranspose2d(2 * width, width, 2, 2)])
            self.join = nn.ModuleList([double(4 * width, 2 * width), double(2 * width, width)])
            self.classes = nn.Conv2d(width, 2, 1)

        def forward(self, x):
            seen = [self.down[0](x)]
            for block in self.down[1:]:
                seen.append(block(F.max_pool2d(seen[-1], 2)))
            x = seen.pop()
            for up, join in zip(self.up, self.join):
                x = join(t.cat([up(x), seen.pop()], 1))
            return self.classes(x)

    class SqueezeExcite(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.squeeze, self.excite = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)

        def forward(self, x):
            return x * t.sigmoid(self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))

    class Inverted(nn.Module):
        """EfficientNet's block."""

        def __init__(self, inputs, outputs, stride, expansion=4):
            super().__init__()
            wide = inputs * expansion
            self.adds = stride == 1 and inputs == outputs
            self.layers = nn.Sequential(
                *normalized(t, nn.Conv2d(inputs, wide, 1, bias=False), wide, nn.SiLU()),
                *normalized(t, nn.Conv2d(wide, wide, 5, stride, 2, groups=wide, bias=False), wide, nn.SiLU()),
                SqueezeExcite(wide), *normalized(t, nn.Conv2d(wide, outputs, 1, bias=False), outputs))

        def forward(self, x):
            return x + self.layers(x) if self.adds else self.layers(x)

    class EfficientNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                *normalized(t, nn.Conv2d(3, 16, 3, 2, 1, bias=False), 16, nn.SiLU()), Inverted(16, 24, 2),
                Inverted(24, 24, 1), Inverted(24, 40, 2), Inverted(40, 40, 1), Inverted(40, 80, 2), Inverted(80, 80, 1))
            self.classes = nn.Linear(80, 10)

        def forward(self, x):
            return self.classes(self.layers(x).mean((2, 3)))

    class DenseNet(nn.Module):
        def __init__(self, channels=16, growth=12, layers=8):
            super().__init__()
            self.first = nn.Conv2d(3, channels, 3, padding=1)
            self.layers = nn.ModuleList()
            for _ in range(layers):
                self.layers.append(nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(),
                                                 nn.Conv2d(channels, growth, 3, padding=1, bias=False)))
                channels += growth
            self.classes = nn.Linear(channels, 10)

        def forward(self, x):
            x = self.first(x)
            for layer in self.layers:
                x = t.cat([x, layer(x)], 1)
            return self.classes(F.avg_pool2d(x, x.shape[-1]).flatten(1))

    class Grouped(nn.Module):
        """ResNeXt's block: a convolution in 32 groups."""

        def __init__(self, inputs, outputs, stride):
            super().__init__()
            wide = outputs // 2
            self.layers = nn.Sequential(
                *normalized(t, nn.Conv2d(inputs, wide, 1, bias=False), wide, nn.ReLU()),
                *normalized(t, nn.Conv2d(wide, wide, 3, stride, 1, groups=32, bias=False), wide, nn.ReLU()),
                *normalized(t, nn.Conv2d(wide, outputs, 1, bias=False), outputs))
            self.beside = (nn.Identity() if inputs == outputs else
                           nn.Sequential(*normalized(t, nn.Conv2d(inputs, outputs, 1, stride, bias=False), outputs)))

        def forward(self, x):
            return F.relu(self.layers(x) + self.beside(x))

    def resnext():
        return nn.Sequential(*normalized(t, nn.Conv2d(3, 64, 3, 2, 1, bias=False), 64, nn.ReLU()), Grouped(64, 256, 1),
                             Grouped(256, 256, 1), Grouped(256, 512, 2), Grouped(512, 512, 1), nn.AdaptiveAvgPool2d(1),
                             nn.Flatten(), nn.Linear(512, 10))

    class ChannelNorm(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.norm = nn.LayerNorm(channels)

        def forward(self, x):
            return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class ConvNeXtBlock(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
            self.layers = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, 4 * channels), nn.GELU(),
                                        nn.Linear(4 * channels, channels))
            self.scale = nn.Parameter(t.ones(channels) * 1e-6)

        def forward(self, x):
            y = self.layers(self.depthwise(x).permute(0, 2, 3, 1)) * self.scale
            return x + y.permute(0, 3, 1, 2)

    def convnext():
        layers = [nn.Conv2d(3, 48, 4, 4), ChannelNorm(48), ConvNeXtBlock(48), ConvNeXtBlock(48)]
        for inputs, outputs in ((48, 96), (96, 192)):
            layers += [ChannelNorm(inputs), nn.Conv2d(inputs, outputs, 2, 2), ConvNeXtBlock(outputs)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 10))

    def volumes():
        layers = []
        for inputs, outputs in ((1, 16), (16, 32), (32, 64)):
            layers += [nn.Conv3d(inputs, outputs, 3, padding=1), nn.BatchNorm3d(outputs), nn.ReLU(), nn.MaxPool3d(2)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 10))

    def generator():
        layers = []
        for inputs, outputs, stride, padding in ((64, 128, 1, 0), (128, 64, 2, 1), (64, 32, 2, 1)):
            layers += normalized(t, nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False), outputs,
                                 nn.ReLU(True))
        return nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())

    def discriminator():
        layers = [nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2, True)]
        for inputs, outputs in ((32, 64), (64, 128)):
            layers += normalized(t, nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), outputs, nn.LeakyReLU(0.2, True))
        return nn.Sequential(*layers, nn.Conv2d(128, 1, 4), nn.Flatten(0))

    return UNet, EfficientNet, DenseNet, resnext, convnext, volumes, generator, discriminator


def attentive(t):
    nn, F = t.nn, t.nn.functional

    class VisionTransformer(nn.Module):
        def __init__(self, width=128, patches=64):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 4, 4)
            self.token = nn.Parameter(t.zeros(1, 1, width))
            self.places = nn.Parameter(t.zeros(1, patches + 1, width))
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, activation='gelu', batch_first=True,
                                               norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.classes = nn.Linear(width, 10)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = t.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
            return self.classes(self.encoder(x)[:, 0])

    def wide_and_back(width):
        return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    class SwinBlock(nn.Module):
        """Attention within windows, which every other block shifts."""

        def __init__(self, width, heads, window, shift):
            super().__init__()
            self.heads, self.window, self.shift = heads, window, shift
            self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.places = nn.Parameter(t.zeros(heads, window * window, window * window))
            self.wide = nn.Sequential(nn.LayerNorm(width), *wide_and_back(width))

        def attend(self, x):
            windows, length, width = x.shape
            q, k, v = self.qkv(x).reshape(windows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            weights = F.softmax(q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + self.places, -1)
            return self.out((weights @ v).transpose(1, 2).reshape(windows, length, width))

        def forward(self, x):
            images, height, width, channels = x.shape
            w = self.window
            y = t.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
            y = y.view(images, height // w, w, width // w, w, channels).permute(0, 1, 3, 2, 4, 5)
            y = self.attend(y.reshape(-1, w * w, channels))
            y = y.view(images, height // w, width // w, w, w, channels).permute(0, 1, 3, 2, 4, 5)
            x = x + t.roll(y.reshape(images, height, width, channels), (self.shift, self.shift), (1, 2))
            return x + self.wide(x)

    class Swin(nn.Module):
        def __init__(self, width=64, window=4):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 2, 2)
            self.blocks = nn.Sequential(*[SwinBlock(width, 4, window, i % 2 * window // 2) for i in range(4)])
            self.classes = nn.Linear(width, 10)

        def forward(self, x):
            return self.classes(self.blocks(self.patches(x).permute(0, 2, 3, 1)).mean((1, 2)))

    class MixerBlock(nn.Module):
        def __init__(self, width, patches):
            super().__init__()
            self.norm, self.tokens = nn.LayerNorm(width), wide_and_back(patches)
            self.channels = nn.Sequential(nn.LayerNorm(width), *wide_and_back(width))

        def forward(self, x):
            x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(x)

    class Mixer(nn.Module):
        def __init__(self, width=128, patches=64):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 4, 4)
            self.blocks = nn.Sequential(*[MixerBlock(width, patches) for _ in range(4)])
            self.classes = nn.Linear(width, 10)

        def forward(self, x):
            return self.classes(self.blocks(self.patches(x).flatten(2).transpose(1, 2)).mean(1))

    return VisionTransformer, Swin, Mixer


def denoising(t):
    """A U-Net of a diffusion model: group norms, the time, attention, skipped connections."""
    nn, F = t.nn, t.nn.functional

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, time):
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
            self.time = nn.Linear(time, outputs)
            self.second = nn.Sequential(nn.GroupNorm(8, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
            self.beside = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

        def forward(self, x, time):
            return self.beside(x) + self.second(self.first(x) + self.time(F.silu(time))[:, :, None, None])

    class Attention(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.norm, self.qkv = nn.GroupNorm(8, channels), nn.Conv2d(channels, 3 * channels, 1)
            self.out = nn.Conv2d(channels, channels, 1)

        def forward(self, x):
            images, channels, height, width = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(images, 3, 4, channels // 4, -1).transpose(3, 4).unbind(1)
            y = F.scaled_dot_product_attention(q, k, v)
            return x + self.out(y.transpose(2, 3).reshape(images, channels, height, width))

    class Diffusion(nn.Module):
        def __init__(self, width=32, time=128):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(32, time), nn.SiLU(), nn.Linear(time, time))
            self.first, self.outer = nn.Conv2d(3, width, 3, padding=1), Residual(width, width, time)
            self.down = nn.ModuleList([nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(2 * width, 2 * width, 3, 2, 1)])
            self.inner, self.attention = Residual(width, 2 * width, time), Attention(2 * width)
            self.middle, self.middle_attention = Residual(2 * width, 2 * width, time), Attention(2 * width)
            self.up = nn.ModuleList([Residual(4 * width, 2 * width, time), Residual(3 * width, width, time)])
            self.last = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1))

        def forward(self, x, when):
            angles = when[:, None] * t.exp(t.arange(16, dtype=t.float32) * (-math.log(10000) / 16))[None]
            time = self.time(t.cat([angles.sin(), angles.cos()], 1))
            outer = self.outer(self.first(x), time)
            inner = self.attention(self.inner(self.down[0](outer), time))
            x = self.middle_attention(self.middle(self.down[1](inner), time))
            for residual, seen in zip(self.up, (inner, outer)):
                x = residual(t.cat([F.interpolate(x, scale_factor=2, mode='nearest'), seen], 1), time)
            return self.last(x)

    return Diffusion


def architectures(t):
    s, F = Samples(), t.nn.functional
    classes, squares = of_output(F.cross_entropy), of_output(F.mse_loss)
    images, labels = s.normal(16, 3, 32, 32), s.classes(10, 16)
    unet, efficientnet, densenet, resnext, convnext, volumes, generator, discriminator = convolutional(t)
    vit, swin, mixer = attentive(t)
    return {
        'unet': (unet, classes, [s.normal(4, 3, 64, 64)], s.classes(2, 4, 64, 64)),
        'efficientnet': (efficientnet, classes, [s.normal(16, 3, 64, 64)], labels),
        'densenet': (densenet, classes, [images], labels),
        'resnext': (resnext, classes, [images], labels),
        'convnext': (convnext, classes, [s.normal(16, 3, 64, 64)], labels),
        'volumes': (volumes, classes, [s.normal(4, 1, 24, 24, 24)], labels[:4]),
        'vit': (vit, classes, [images], labels),
        'swin': (swin, classes, [images], labels),
        'mixer': (mixer, classes, [images], labels),
        'diffusion': (denoising(t), squares, [s.normal(8, 3, 32, 32), s.classes(1000, 8).astype('float32')],
                      s.normal(8, 3, 32, 32)),
        'dcgan/generator': (generator, squares, [s.normal(16, 64, 1, 1)], images),
        'dcgan/discriminator': (discriminator, of_output(F.binary_cross_entropy_with_logits), [images],
                                (s.uniform(16) > 0.5).astype('float32')),
    }
