"""torch.compile(backend="sinter") beside eager torch: `make wheel-test PYTHON=…`, or unittest with build/python on the path."""
import copy
import pathlib
import tempfile
import threading
import unittest

import torch
from torch import nn

import sinter
import sinter.torch_backend

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "pt2"


def compiled(model, **options):
    return torch.compile(model, backend=sinter.torch_backend.backend, **options)


class Attention(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.norm, self.project, self.causal = nn.LayerNorm(32), nn.Linear(32, 96), causal

    def forward(self, x, mask=None):
        q, k, v = self.project(self.norm(x)).view(*x.shape[:2], 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal and mask is None)
        return y.transpose(1, 2).flatten(2)


class TorchBackendTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch._dynamo.reset()
        sinter.reset_report()

    def assert_close(self, have, want, tolerance=1e-4):
        torch.testing.assert_close(have, want, rtol=tolerance, atol=tolerance)

    def check(self, model, inputs, is_whole=True, **options):
        """Results, gradients and buffers of two steps."""
        eager, fast = copy.deepcopy(model), copy.deepcopy(model)
        run = compiled(fast, **options)
        for _ in range(2):
            want, have = eager(*inputs), run(*inputs)
            self.assert_close(have, want)
            weight = torch.randn_like(want)
            (want * weight).sum().backward()
            (have * weight).sum().backward()
        for (name, a), b in zip(eager.named_parameters(), fast.parameters()):
            self.assertIsNotNone(b.grad, name)
            self.assert_close(b.grad, a.grad)
        for a, b in zip(eager.buffers(), fast.buffers()):
            self.assert_close(b, a)
        if is_whole:
            self.assertEqual(sinter.report().nodes_in_torch, 0, str(sinter.report()))
        self.assertGreater(sinter.report().programs, 0)

    def test_perceptron(self):
        self.check(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)), [torch.randn(8, 16)])

    def test_convolutions_and_batch_norm(self):
        self.check(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3, stride=2)),
                   [torch.randn(4, 3, 16, 16)])

    def test_attention(self):
        self.check(Attention(), [torch.randn(2, 10, 32)])
        self.check(Attention(), [torch.randn(2, 10, 32), torch.randn(2, 4, 10, 10).relu()])

    def test_encoder_layers(self):
        for how in ({}, {"norm_first": True, "activation": "gelu"}):
            model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **how).eval()
            x = torch.randn(2, 5, 16)
            with torch.no_grad():
                self.assert_close(compiled(model)(x), model(x))
            self.assertEqual(sinter.report().nodes_in_torch, 0, str(sinter.report()))

    def test_embedding_bags(self):
        indices, offsets = torch.tensor([3, 1, 4, 1, 5, 2, 6]), torch.tensor([0, 2, 2, 6])
        for mode in ("sum", "mean", "max"):
            for padding in (None, 1):
                torch._dynamo.reset()
                with self.subTest(mode=mode, padding=padding):
                    self.check(nn.EmbeddingBag(8, 3, mode=mode, padding_idx=padding), [indices, offsets])
        weighted = nn.EmbeddingBag(8, 3, mode="sum", include_last_offset=True)
        self.check(weighted, [indices, torch.tensor([0, 3, 7]), torch.rand(7)])

    def test_sizes_that_change(self):
        model, run = Attention(), None
        run = compiled(model, dynamic=True)
        for length in (7, 9, 13, 20):
            x = torch.randn(2, length, 32)
            self.assert_close(run(x), model(x))
        self.assertEqual(sinter.report().graphs, 2)  # a forward and its backward, once for all lengths

    def test_numbers_that_change(self):
        run = compiled(lambda x, n: x.repeat(n, 1) * n, dynamic=True)
        for n in (2, 3, 5):
            x = torch.randn(4, 3)
            self.assert_close(run(x, n), x.repeat(n, 1) * n)

    def test_writes_to_inputs(self):
        def step(x, state):
            state.mul_(0.5).add_(x)
            return state.sum() + x.relu_().sum()
        x, state = torch.randn(5), torch.randn(5)
        x2, state2 = x.clone(), state.clone()
        with torch.no_grad():
            self.assert_close(compiled(step)(x2, state2), step(x, state))
        self.assert_close(x2, x)
        self.assert_close(state2, state)

    def test_results_on_the_memory_of_inputs(self):
        run = compiled(lambda x: (x.t(), x, x[1:] * 2))
        x = torch.randn(3, 4)
        a, b, _ = run(x)
        x.zero_()
        self.assertEqual(a.abs().sum(), 0)
        self.assertEqual(b.data_ptr(), x.data_ptr())

    def test_results_outlive_the_call(self):
        run = compiled(lambda x: x * 2)
        kept = [run(torch.full((100,), float(i))) for i in range(20)]
        for i, y in enumerate(kept):
            self.assertEqual(y[50].item(), 2.0 * i)

    def test_orders_in_memory(self):
        x = torch.randn(2, 8, 6, 6).to(memory_format=torch.channels_last)
        model = nn.Conv2d(8, 4, 3).to(memory_format=torch.channels_last)
        have, want = compiled(model)(x), model(x)
        self.assert_close(have, want)
        self.assertEqual(have.stride(), want.stride())

    def test_dtypes(self):
        for dtype in (torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool):
            x = torch.randint(0, 2, (4, 5)).to(dtype)
            have, want = compiled(lambda x: (x | x if not x.is_floating_point() else x * 3).sum(0))(x), None
            want = (x | x if not x.is_floating_point() else x * 3).sum(0)
            self.assertEqual(have.dtype, want.dtype)
            self.assert_close(have, want)

    def test_what_sinter_has_not_stays_in_torch(self):
        @torch.library.custom_op("sinter_test::folded", mutates_args=())
        def folded(x: torch.Tensor) -> torch.Tensor:
            return x + x.flip(0)
        folded.register_fake(torch.empty_like)

        def f(x):
            return folded(x * 2 + 1).sin() + 1
        x = torch.randn(10)
        self.assert_close(compiled(f)(x), f(x))
        told = sinter.report()
        self.assertEqual(told.nodes_in_torch, 1)
        self.assertIn("sinter_test.folded", str(told))
        self.assertEqual(told.programs, 2)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "fullgraph.*sinter_test.folded"):
            compiled(f, options={"fullgraph": True})(x)

    def test_options(self):
        x = torch.randn(4, 16)
        model = nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()
        for mode in ("default", "reduce-overhead", "max-autotune"):
            torch._dynamo.reset()
            self.assert_close(compiled(model, options={"mode": mode})(x), model(x))
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "fastest"):
            compiled(model, options={"mode": "fastest"})(x)
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "no_such_option"):
            compiled(model, options={"no_such_option": 1})(x)

    def test_dropout_follows_the_seed(self):
        run = compiled(nn.Dropout(0.25).train())
        x = torch.ones(100, 100)
        torch.manual_seed(3)
        first = run(x)
        second = run(x)
        torch.manual_seed(3)
        self.assert_close(run(x), first)
        self.assertFalse(torch.equal(first, second))
        self.assertAlmostEqual((first == 0).float().mean().item(), 0.25, delta=0.03)
        self.assertEqual(set(first.unique().tolist()), {0.0, torch.tensor(1 / 0.75).item()})

    def test_many_threads(self):
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
        run = compiled(model)
        with torch.no_grad():
            run(torch.randn(8, 16))
            wrong = []

            def work():
                with torch.no_grad():
                    for _ in range(50):
                        x = torch.randn(8, 16)
                        if not torch.allclose(run(x), model(x), atol=1e-5):
                            wrong.append(x)
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_an_optimiser_changes_weights(self):
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        run, optimiser = compiled(model), torch.optim.Adam(model.parameters(), lr=0.02)
        x = torch.randn(64, 4)
        y = (x[:, :1] * x[:, 1:2]).sin()
        losses = []
        for _ in range(60):
            optimiser.zero_grad()
            loss = (run(x) - y).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.3 * losses[0])

    def test_a_program_without_tensors_as_inputs(self):
        self.assert_close(compiled(lambda: torch.arange(5) * 2)(), torch.arange(5) * 2)

    def test_a_number_as_a_tensor_of_its_own(self):
        constant = torch.tensor([1.0, 2.0, 3.0])
        self.assert_close(compiled(lambda x: x * constant + torch.tensor(2.0))(torch.ones(3)), constant + 2)


class LoadTest(unittest.TestCase):
    def test_torch_and_numpy(self):
        import numpy
        model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).eval()
        x = torch.randn(8, 16)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = pathlib.Path(folder) / "model.pt2"
            torch.export.save(torch.export.export(model, (x,)), path)
            program = sinter.load(path)
            want = model(x)
            torch.testing.assert_close(program(x), want)
            have = program(x.numpy())
            self.assertIsInstance(have, numpy.ndarray)
            numpy.testing.assert_allclose(have, want.numpy(), rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
