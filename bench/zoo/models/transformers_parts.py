"""Models of the transformers library wrapped so that they take tensors and give a tuple of tensors."""

from .parts import add, f, flat, ids, ones

TEXT = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    vocab_size=100,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)
ENCODER = dict(TEXT, type_vocab_size=2)
DECODER = dict(TEXT, num_key_value_heads=2)
BART = dict(
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    vocab_size=100,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=2,
)
VIT = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    image_size=32,
    patch_size=8,
    num_labels=5,
)


def hf(tag, model, config, kw, inputs, **fixed):
    """kw: the configuration's arguments; inputs: a function giving {name: tensor}."""

    def build():
        import transformers

        def resolve(v):  # ("ViTConfig", {...}) stands for a configuration inside a configuration
            if isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) and v[0].endswith("Config"):
                return getattr(transformers, v[0])(**{k: resolve(x) for k, x in v[1].items()})
            return v

        c = getattr(transformers, config)(**{k: resolve(v) for k, v in kw.items()})
        m = getattr(transformers, model)(c)
        return flat(m, inputs(), **fixed)

    add(f"hf/{tag}", build)


def text(with_mask=True, n=12):
    def make():
        x = {"input_ids": ids(2, n)}
        if with_mask:
            x["attention_mask"] = ones(2, n)
        return x

    return make


def image(size=32, batch=2, name="pixel_values"):
    return lambda: {name: f(batch, 3, size, size)}
