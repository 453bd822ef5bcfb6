"""The models that training is measured with, in PyTorch: the suite by the names and sizes of bench/support/training_models.cpp, and
those of transformers. Weights and data are random."""
import json
import pathlib
import re

import torch
from torch import nn

from torch_models import transformers_model

PRESETS = pathlib.Path(__file__).resolve().parent.parent.parent / "sinter" / "models" / "presets.cpp"


class Case:
    """A model that gives rows of classes, a batch, and the class of each row."""

    def __init__(self, model, x, y):
        self.model, self.x, self.y = model, x, y


def mlp(batch=128):
    net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    return Case(net, torch.randn(batch, 784), torch.randint(10, (batch,)))


def cnn(batch=32, image=32):
    def convolution(inputs, outputs):
        return nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)

    net = nn.Sequential(convolution(3, 32), nn.BatchNorm2d(32), nn.ReLU(), convolution(32, 64), nn.BatchNorm2d(64), nn.ReLU(),
                        nn.MaxPool2d(2), convolution(64, 128), nn.BatchNorm2d(128), nn.ReLU(), nn.MaxPool2d(2),
                        convolution(128, 128), nn.BatchNorm2d(128), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(128, 10))
    return channels_last(Case(net, torch.randn(batch, 3, image, image), torch.randint(10, (batch,))))


class LstmLm(nn.Module):
    VOCABULARY = 2000

    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(self.VOCABULARY, 128), nn.LSTM(128, 256, batch_first=True)
        self.head = nn.Linear(256, self.VOCABULARY)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0]).flatten(0, 1)


def lstm(batch=32, tokens=32):
    return Case(LstmLm(), torch.randint(LstmLm.VOCABULARY, (batch, tokens)), torch.randint(LstmLm.VOCABULARY, (batch * tokens,)))


# --- models of a configuration

GPT_TINY = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 5000, "n_embd": 256, "n_layer": 4,
            "n_head": 4, "n_positions": 1024}
VIT_TINY = {"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 192, "intermediate_size": 768,
            "num_hidden_layers": 6, "num_attention_heads": 3, "image_size": 64, "patch_size": 8, "num_labels": 1000}
NO_DROPOUT = {"gpt2": {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}}


def preset(name):
    found = re.search(r'\{"' + re.escape(name) + r'", R"\((.*?)\)"\}', PRESETS.read_text(), re.S)
    return json.loads(found.group(1))


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).logits.flatten(0, -2)


def configured(config, batch=4, tokens=128, image=None):
    model = Logits(transformers_model(config | NO_DROPOUT.get(config["model_type"], {})))
    if "vocab_size" in config:
        words = config["vocab_size"]
        return Case(model, torch.randint(words, (batch, tokens)), torch.randint(words, (batch * tokens,)))
    image = image or config.get("image_size", 224)
    case = Case(model, torch.randn(batch, 3, image, image), torch.randint(1000, (batch,)))
    return channels_last(case) if config["model_type"] == "resnet" else case


def channels_last(case):
    case.x = case.x.contiguous(memory_format=torch.channels_last)
    case.model = case.model.to(memory_format=torch.channels_last)
    return case


SUITE = {
    "mlp": mlp,
    "cnn": cnn,
    "gpt-tiny": lambda **sizes: configured(GPT_TINY, **sizes),
    "vit-tiny": lambda **sizes: configured(VIT_TINY, **{"batch": 16, **sizes}),
    "resnet-18": lambda **sizes: configured(preset("resnet-18"), **{"batch": 8, "image": 96, **sizes}),
    "lstm": lstm,
}


def training_case(name, **sizes):
    """One of the suite, or a name of sinter/models/presets.cpp."""
    return SUITE[name](**sizes) if name in SUITE else configured(preset(name), **sizes)
