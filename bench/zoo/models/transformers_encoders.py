"""Encoders of text."""

from .transformers_parts import ENCODER, TEXT, hf, text

for tag, model, config, extra in [
    ("roberta", "RobertaForMaskedLM", "RobertaConfig", {}),
    ("xlm-roberta", "XLMRobertaForSequenceClassification", "XLMRobertaConfig", {}),
    ("electra", "ElectraForMaskedLM", "ElectraConfig", dict(embedding_size=32)),
    ("albert", "AlbertForMaskedLM", "AlbertConfig", dict(embedding_size=16)),
    ("mobilebert", "MobileBertForMaskedLM", "MobileBertConfig", dict(embedding_size=32, intra_bottleneck_size=32)),
    ("deberta", "DebertaForMaskedLM", "DebertaConfig", dict(relative_attention=True, pos_att_type=["c2p", "p2c"])),
    (
        "deberta-v2",
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        dict(
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
            share_att_key=True,
            position_buckets=16,
            norm_rel_ebd="layer_norm",
        ),
    ),
    ("layoutlm", "LayoutLMForMaskedLM", "LayoutLMConfig", {}),
    ("megatron-bert", "MegatronBertForMaskedLM", "MegatronBertConfig", {}),
    ("modernbert", "ModernBertForMaskedLM", "ModernBertConfig", dict(cls_token_id=1, sep_token_id=2)),
    (
        "nystromformer",
        "NystromformerForMaskedLM",
        "NystromformerConfig",
        dict(num_landmarks=4, segment_means_seq_len=12),
    ),
    ("yoso", "YosoForMaskedLM", "YosoConfig", dict(use_expectation=True)),
    ("convbert", "ConvBertForMaskedLM", "ConvBertConfig", dict(embedding_size=32)),
    ("roformer", "RoFormerForMaskedLM", "RoFormerConfig", dict(embedding_size=32)),
    ("ibert", "IBertForMaskedLM", "IBertConfig", {}),
]:
    hf(tag, model, config, dict(ENCODER, **extra), text())
hf(
    "xlm",
    "XLMWithLMHeadModel",
    "XLMConfig",
    dict(emb_dim=32, n_layers=2, n_heads=4, vocab_size=100, max_position_embeddings=64),
    text(),
)
hf(
    "flaubert",
    "FlaubertWithLMHeadModel",
    "FlaubertConfig",
    dict(emb_dim=32, n_layers=2, n_heads=4, vocab_size=100, max_position_embeddings=64),
    text(),
)
hf("fnet", "FNetForMaskedLM", "FNetConfig", ENCODER, text(False))
hf(
    "longformer",
    "LongformerForMaskedLM",
    "LongformerConfig",
    dict(ENCODER, attention_window=8, max_position_embeddings=80),
    text(n=16),
)
hf("big-bird", "BigBirdForMaskedLM", "BigBirdConfig", dict(ENCODER, attention_type="original_full"), text())
hf(
    "funnel",
    "FunnelForMaskedLM",
    "FunnelConfig",
    dict(vocab_size=100, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64),
    text(),
)
hf(
    "xlnet",
    "XLNetLMHeadModel",
    "XLNetConfig",
    dict(vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=64),
    text(),
    use_mems=False,
)
hf(
    "canine",
    "CanineModel",
    "CanineConfig",
    dict(ENCODER, num_hash_buckets=64, local_transformer_stride=8, downsampling_rate=4, upsampling_kernel_size=4),
    text(n=32),
)
