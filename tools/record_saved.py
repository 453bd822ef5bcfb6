#!/usr/bin/env python3
"""Writes tests/data/saved: a small network and its optimiser as Python saves them, and the network one step later.

    python3 tools/record_saved.py
"""
import os
from collections import OrderedDict

import torch
from torch import nn

torch.manual_seed(0)
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "saved")
os.makedirs(folder, exist_ok=True)
net = nn.Sequential(OrderedDict(norm=nn.BatchNorm1d(3), first=nn.Linear(3, 4), tanh=nn.Tanh(), last=nn.Linear(4, 2)))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.sin(torch.arange(15, dtype=torch.float32)).view(5, 3)


def step():
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()


for _ in range(3):
    step()
torch.save(net.state_dict(), os.path.join(folder, "net.pt"))
torch.save(optimizer.state_dict(), os.path.join(folder, "adam.pt"))
step()
torch.save(net.state_dict(), os.path.join(folder, "net_after.pt"))
