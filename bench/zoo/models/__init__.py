"""The zoo: random weights, small configurations, nothing downloaded. Libraries are loaded when a model is built, so that one that is
missing costs its own models alone."""

from . import (
    torchvision_models,
    transformers_encoders,
    transformers_decoders,
    transformers_seq2seq,
    transformers_vision,  # noqa
    transformers_mixed,
    timm_models,
    diffusers_models,
    classics,
)
from .parts import ZOO  # noqa
