"""Images by torchvision and PIL: decoded files, transforms with given factors, grids.

Decoding: decode/NAME/file holds the bytes of a file, decode/NAME/MODE what torchvision.io.decode_image makes of them.
Transforms: the input is "image", uint8, and image / 255; NAME/u8 and NAME/f32 are the results.
tests/data/test_transforms.c has the same calls under the same names.
"""
import io
import os
import struct
import zlib

import numpy as np
import torch
from PIL import Image
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import InterpolationMode as Mode
from torchvision.transforms.v2 import functional as F
from torchvision.utils import make_grid

from golden_file import save_safetensors

MODES = {'unchanged': ImageReadMode.UNCHANGED, 'gray': ImageReadMode.GRAY, 'rgb': ImageReadMode.RGB}


def scene(height, width, channels, random):
    """Smooth colours with edges and noise, which resizing, blurring and JPEG treat differently."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 100 * np.sin(x / (3 + c) + y / (5 - c)) + 27 * ((x // 4 + y // 3 + c) % 2) for c in range(channels)]
    planes = np.stack(planes, -1) + random.uniform(-20, 20, (height, width, channels))
    return np.clip(planes, 0, 255).astype(np.uint8)


def interlaced(pixels):
    """An Adam7 PNG of RGB pixels, which PIL cannot write."""
    rows = b''
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    for top, left, dy, dx in passes:
        part = pixels[top::dy, left::dx]
        if part.size:
            rows += b''.join(b'\0' + row.tobytes() for row in part)
    chunk = lambda name, data: struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    header = struct.pack('>IIBBBBB', pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 1)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(rows, 9)) + chunk(b'IEND', b'')


def encoded(image, format, **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def oriented(pixels, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(Image.fromarray(pixels), 'JPEG', quality=90, exif=exif)


def files(random):
    rgb, gray = scene(13, 17, 3, random), scene(11, 9, 1, random)[..., 0]
    alpha = random.randint(0, 256, (13, 17, 1)).astype(np.uint8)
    palette = Image.fromarray(rgb).quantize(16)
    yield 'png_rgb', encoded(Image.fromarray(rgb), 'PNG'), MODES
    yield 'png_gray', encoded(Image.fromarray(gray), 'PNG'), MODES
    yield 'png_rgba', encoded(Image.fromarray(np.concatenate([rgb, alpha], -1)), 'PNG'), MODES
    yield 'png_la', encoded(Image.fromarray(np.stack([gray, 255 - gray], -1), 'LA'), 'PNG'), MODES
    yield 'png_palette', encoded(palette, 'PNG'), ('gray', 'rgb')
    yield 'png_one_bit', encoded(Image.fromarray(gray > 127), 'PNG'), ('rgb',)
    yield 'png_interlaced', interlaced(rgb), MODES
    yield 'jpeg_rgb', encoded(Image.fromarray(rgb), 'JPEG', quality=80), MODES
    yield 'jpeg_gray', encoded(Image.fromarray(gray), 'JPEG'), MODES
    yield 'jpeg_progressive', encoded(Image.fromarray(rgb), 'JPEG', progressive=True, subsampling=0), ('rgb',)
    yield 'jpeg_cmyk', encoded(Image.fromarray(rgb).convert('CMYK'), 'JPEG', quality=95), ('rgb',)


def decoding(tensors, random):
    names = []
    as_tensor = lambda data: torch.frombuffer(bytearray(data), dtype=torch.uint8)
    for name, data, modes in files(random):
        names.append(name)
        tensors['decode/%s/file' % name] = as_tensor(data)
        for mode in modes:
            tensors['decode/%s/%s' % (name, mode)] = decode_image(as_tensor(data), MODES[mode]).contiguous()
    for orientation in range(1, 9):
        data = as_tensor(oriented(scene(8, 16, 3, random), orientation))
        tensors['orientation/%d/file' % orientation] = data
        turned = decode_image(data, ImageReadMode.RGB, apply_exif_orientation=True)
        tensors['orientation/%d/rgb' % orientation] = turned.contiguous()
    return names


def resize(x, size, **options):
    """In floats: bytes are only rounded at the end. (PyTorch 2.15 fails for bytes and some sizes.)"""
    result = F.resize(x.float(), size, antialias=True, **options)
    return result if x.dtype == torch.float32 else result.round().clamp(0, 255).to(torch.uint8)


def transforms():
    scale = lambda x: 255 if x.dtype == torch.uint8 else 1
    return {
        'resize_smaller': lambda x: resize(x, [7, 11]),
        'resize_larger': lambda x: resize(x, [31, 40]),
        'resize_mixed': lambda x: resize(x, [40, 9]),
        'resize_short': lambda x: resize(x, [10]),
        'resize_nearest': lambda x: resize(x, [7, 40], interpolation=Mode.NEAREST),
        'resize_bicubic': lambda x: resize(x, [9, 30], interpolation=Mode.BICUBIC),
        'resize_to_one': lambda x: resize(x, [1, 1]),
        'center_crop': lambda x: F.center_crop(x, [8, 9]),
        'center_crop_odd': lambda x: F.center_crop(x, [12, 14]),
        'center_crop_larger': lambda x: F.center_crop(x, [24, 18]),
        'horizontal_flip': F.horizontal_flip,
        'vertical_flip': F.vertical_flip,
        'rotate_31': lambda x: F.rotate(x, 31.0),
        'rotate_bilinear': lambda x: F.rotate(x, -17.3, interpolation=Mode.BILINEAR, fill=[0.0]),
        'rotate_fill': lambda x: F.rotate(x, 200.0, interpolation=Mode.BILINEAR, fill=[0.25 * scale(x)]),
        'rotate_180': lambda x: F.rotate(x, 180.0),
        'rotate_square_90': lambda x: F.rotate(F.center_crop(x, [12, 12]), 90.0),
        'rotate_square_270': lambda x: F.rotate(F.center_crop(x, [12, 12]), -90.0),
        'affine': lambda x: F.affine(x, 11.0, [0, 0], 1.3, [7.0, -5.0], interpolation=Mode.BILINEAR,
                                     fill=[0.5 * scale(x)]),
        'brightness_up': lambda x: F.adjust_brightness(x, 1.7),
        'brightness_down': lambda x: F.adjust_brightness(x, 0.3),
        'contrast_up': lambda x: F.adjust_contrast(x, 1.6),
        'contrast_down': lambda x: F.adjust_contrast(x, 0.2),
        'saturation_up': lambda x: F.adjust_saturation(x, 2.1),
        'saturation_down': lambda x: F.adjust_saturation(x, 0.4),
        'hue_up': lambda x: F.adjust_hue(x, 0.21),
        'hue_down': lambda x: F.adjust_hue(x, -0.48),
        'grayscale': lambda x: F.rgb_to_grayscale(x, 3),
        'invert': F.invert,
        'autocontrast': F.autocontrast,
        'equalize': F.equalize,
        'posterize': lambda x: F.posterize(x, 3),
        'solarize': lambda x: F.solarize(x, 0.5 * scale(x)),
        'sharper': lambda x: F.adjust_sharpness(x, 2.5),
        'blunter': lambda x: F.adjust_sharpness(x, 0.2),
        'blur_3': lambda x: F.gaussian_blur(x, [3, 3], [0.7, 0.7]),
        'blur_9': lambda x: F.gaussian_blur(x, [9, 9], [2.0, 2.0]),
        'normalize': lambda x: F.normalize(F.to_dtype(x, torch.float32, scale=True), [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]),
    }


def make(folder):
    random = np.random.RandomState(20)
    tensors = {}
    image = torch.from_numpy(scene(19, 23, 3, random)).permute(2, 0, 1).contiguous()
    image[:, :3, :4] = 77  # gray: no hue
    image[:, 3, :6] = torch.tensor([0, 255, 128, 1, 254, 127], dtype=torch.uint8)
    tensors['image'] = image
    steps = transforms()
    for name, function in steps.items():
        tensors[name + '/u8'] = function(image).contiguous()
        tensors[name + '/f32'] = function(image.float() / 255).contiguous()
    names = decoding(tensors, random)
    batch = torch.from_numpy(random.uniform(-1, 2, (5, 3, 4, 6)).astype(np.float32))
    tensors['grid/in'] = batch
    tensors['grid/plain'] = make_grid(batch, nrow=3)
    tensors['grid/normalized'] = make_grid(batch, nrow=2, padding=1, normalize=True, scale_each=True, pad_value=0.5)
    tensors['grid/range'] = make_grid(batch[:, :1], nrow=8, normalize=True, value_range=(-1, 1))
    save_safetensors(os.path.join(folder, 'images.safetensors'), tensors,
                     {'torch': torch.__version__, 'cases': ' '.join(steps), 'files': ' '.join(names)})
