"""torchvision: classification, segmentation, detection, video, flow."""

import importlib

import torch
from torch import nn

from .parts import add, f, tensors_of


def tv(name, size=64, path="torchvision.models", tag=None, batch=2, **kw):
    def build():
        make = getattr(importlib.import_module(path), name)
        return make(weights=None, **kw).eval(), (f(batch, 3, size, size),)

    add(f"torchvision/{tag or name}", build)


for n in """
        alexnet vgg11_bn vgg16 resnet18 resnet50 resnext50_32x4d wide_resnet50_2 densenet121 squeezenet1_1
        mobilenet_v3_small mobilenet_v3_large mnasnet1_0 efficientnet_b0 efficientnet_v2_s regnet_x_400mf
        regnet_y_400mf swin_v2_t""".split():
    tv(n)
tv("inception_v3", 128, init_weights=False)
tv("vit_b_32", 224, batch=1)
tv("maxvit_t", 224, batch=1)
for n in "fcn_resnet50 deeplabv3_mobilenet_v3_large deeplabv3_resnet50 lraspp_mobilenet_v3_large".split():
    tv(n, 64, "torchvision.models.segmentation", weights_backbone=None)


def tv_detection(name, size=128, **kw):
    def build():
        make = getattr(importlib.import_module("torchvision.models.detection"), name)
        module = make(weights=None, weights_backbone=None, **kw).eval()

        class Detector(nn.Module):
            def __init__(self):
                super().__init__()
                self.m = module

            def forward(self, x):
                return tuple(tensors_of(self.m([x])))

        return Detector().eval(), (torch.rand(3, size, size),)

    add(f"torchvision/{name}", build)


for n in """
        fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_resnet50_fpn retinanet_resnet50_fpn ssd300_vgg16
        ssdlite320_mobilenet_v3_large fcos_resnet50_fpn keypointrcnn_resnet50_fpn""".split():
    tv_detection(n, **({} if "ssd" in n else {"min_size": 128, "max_size": 160}))


def tv_video(name, frames, size):
    def build():
        return getattr(importlib.import_module("torchvision.models.video"), name)(weights=None).eval(), (
            f(1, 3, frames, size, size),
        )

    add(f"torchvision/{name}", build)


tv_video("mc3_18", 4, 32)
tv_video("r2plus1d_18", 4, 32)
tv_video("s3d", 16, 224)


def raft():
    from torchvision.models.optical_flow import raft_small

    m = raft_small(weights=None).eval()

    class Raft(nn.Module):
        def __init__(self):
            super().__init__()
            self.m = m

        def forward(self, a, b):
            return self.m(a, b, num_flow_updates=2)[-1]

    return Raft().eval(), (f(1, 3, 128, 128), f(1, 3, 128, 128))


add("torchvision/raft_small", raft)
