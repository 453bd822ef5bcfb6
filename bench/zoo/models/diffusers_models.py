"""diffusers: denoisers and coders of images."""

import torch

from .parts import add, f, flat, ones


def df(tag, model, kw, inputs, **fixed):
    def build():
        import diffusers

        given = {name: value() if callable(value) else value for name, value in fixed.items()}
        return flat(getattr(diffusers, model)(**kw), inputs(), **dict({"return_dict": False}, **given))

    add(f"diffusers/{tag}", build)


T1 = lambda: torch.tensor([7])
UNETC = dict(
    sample_size=16,
    block_out_channels=(8, 16),
    layers_per_block=1,
    cross_attention_dim=16,
    attention_head_dim=2,
    norm_num_groups=4,
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
)
df(
    "unet2d-condition",
    "UNet2DConditionModel",
    UNETC,
    lambda: {"sample": f(1, 4, 16, 16), "timestep": T1(), "encoder_hidden_states": f(1, 5, 16)},
)
df(
    "unet2d-sdxl",
    "UNet2DConditionModel",
    dict(
        UNETC,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=64,
        transformer_layers_per_block=(1, 2),
    ),
    lambda: {"sample": f(1, 4, 16, 16), "timestep": T1(), "encoder_hidden_states": f(1, 5, 16)},
    added_cond_kwargs=lambda: {"text_embeds": f(1, 16), "time_ids": f(1, 6)},
)
df(
    "unet1d",
    "UNet1DModel",
    dict(
        block_out_channels=(8, 16),
        in_channels=4,
        out_channels=4,
        sample_size=32,
        time_embedding_type="positional",
        freq_shift=1.0,
        use_timestep_embedding=True,
        norm_num_groups=4,
        layers_per_block=1,
        act_fn="swish",
        out_block_type="OutConv1DBlock",
        mid_block_type="MidResTemporalBlock1D",
        down_block_types=("DownResnetBlock1D", "DownResnetBlock1D"),
        up_block_types=("UpResnetBlock1D",),
        downsample_each_block=False,
    ),
    lambda: {"sample": f(1, 4, 32), "timestep": T1()},
)
df(
    "unet-spatio-temporal",
    "UNetSpatioTemporalConditionModel",
    dict(
        sample_size=16,
        in_channels=8,
        out_channels=4,
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=16,
        num_attention_heads=2,
        down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
        up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
        projection_class_embeddings_input_dim=96,
        addition_time_embed_dim=32,
    ),
    lambda: {
        "sample": f(1, 2, 8, 16, 16),
        "timestep": T1(),
        "encoder_hidden_states": f(1, 1, 16),
        "added_time_ids": f(1, 3),
    },
)
df(
    "controlnet",
    "ControlNetModel",
    dict(
        block_out_channels=(8, 16),
        layers_per_block=1,
        in_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        cross_attention_dim=16,
        conditioning_embedding_out_channels=(8, 16),
        norm_num_groups=4,
        attention_head_dim=2,
    ),
    lambda: {
        "sample": f(1, 4, 16, 16),
        "timestep": T1(),
        "encoder_hidden_states": f(1, 5, 16),
        "controlnet_cond": f(1, 3, 32, 32),
    },
)
VAE = dict(
    block_out_channels=(8, 16),
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    latent_channels=4,
    norm_num_groups=4,
)
df("autoencoder-kl", "AutoencoderKL", VAE, lambda: {"sample": f(1, 3, 32, 32)})
df(
    "autoencoder-tiny",
    "AutoencoderTiny",
    dict(
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 2),
        num_decoder_blocks=(2, 1),
    ),
    lambda: {"sample": f(1, 3, 32, 32)},
)
df(
    "autoencoder-dc",
    "AutoencoderDC",
    dict(
        latent_channels=4,
        attention_head_dim=8,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(16, 16),
        decoder_block_out_channels=(16, 16),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
        decoder_norm_types="rms_norm",
        decoder_act_fns="silu",
        downsample_block_type="conv",
        upsample_block_type="interpolate",
    ),
    lambda: {"sample": f(1, 3, 32, 32)},
)
df("vq-model", "VQModel", dict(VAE, num_vq_embeddings=16, latent_channels=4), lambda: {"sample": f(1, 3, 32, 32)})
df(
    "autoencoder-kl-wan",
    "AutoencoderKLWan",
    dict(
        base_dim=4,
        z_dim=4,
        dim_mult=[1, 1, 1, 1],
        num_res_blocks=1,
        temperal_downsample=[False, True, True],
        latents_mean=[0.0] * 4,
        latents_std=[1.0] * 4,
    ),
    lambda: {"sample": f(1, 3, 5, 16, 16)},
)
df(
    "dit",
    "DiTTransformer2DModel",
    dict(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        num_embeds_ada_norm=10,
        norm_num_groups=4,
    ),
    lambda: {"hidden_states": f(1, 4, 8, 8), "timestep": T1(), "class_labels": torch.tensor([3])},
)
df(
    "pixart",
    "PixArtTransformer2DModel",
    dict(
        sample_size=8,
        num_layers=2,
        patch_size=2,
        attention_head_dim=8,
        num_attention_heads=2,
        caption_channels=16,
        in_channels=4,
        cross_attention_dim=16,
        out_channels=8,
        use_additional_conditions=False,
    ),
    lambda: {"hidden_states": f(1, 4, 8, 8), "timestep": T1(), "encoder_hidden_states": f(1, 5, 16)},
    added_cond_kwargs={"aspect_ratio": None, "resolution": None},
)
df(
    "sd3",
    "SD3Transformer2DModel",
    dict(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=2,
        caption_projection_dim=16,
        joint_attention_dim=16,
        pooled_projection_dim=32,
        out_channels=4,
    ),
    lambda: {
        "hidden_states": f(1, 4, 16, 16),
        "encoder_hidden_states": f(1, 5, 16),
        "pooled_projections": f(1, 32),
        "timestep": T1(),
    },
)
df(
    "flux",
    "FluxTransformer2DModel",
    dict(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=[4, 4, 8],
    ),
    lambda: {
        "hidden_states": f(1, 16, 4),
        "encoder_hidden_states": f(1, 5, 32),
        "pooled_projections": f(1, 32),
        "timestep": torch.tensor([0.5]),
        "img_ids": f(16, 3),
        "txt_ids": f(5, 3),
    },
)
df(
    "aura-flow",
    "AuraFlowTransformer2DModel",
    dict(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_mmdit_layers=1,
        num_single_dit_layers=1,
        attention_head_dim=8,
        num_attention_heads=2,
        caption_projection_dim=16,
        joint_attention_dim=16,
        out_channels=4,
        pos_embed_max_size=64,
    ),
    lambda: {"hidden_states": f(1, 4, 16, 16), "timestep": torch.tensor([0.5]), "encoder_hidden_states": f(1, 5, 16)},
)
df(
    "hunyuan-dit",
    "HunyuanDiT2DModel",
    dict(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=2,
        cross_attention_dim=8,
        cross_attention_dim_t5=8,
        pooled_projection_dim=4,
        hidden_size=16,
        text_len=4,
        text_len_t5=4,
        activation_fn="gelu-approximate",
    ),
    lambda: {
        "hidden_states": f(1, 4, 16, 16),
        "timestep": torch.tensor([7.0]),
        "encoder_hidden_states": f(1, 4, 8),
        "text_embedding_mask": ones(1, 4),
        "encoder_hidden_states_t5": f(1, 4, 8),
        "text_embedding_mask_t5": ones(1, 4),
        "image_meta_size": torch.rand(1, 6),
        "style": torch.zeros(1, dtype=torch.long),
    },
    image_rotary_emb=lambda: [f(64, 8), f(64, 8)],
)
df(
    "lumina2",
    "Lumina2Transformer2DModel",
    dict(
        sample_size=16,
        patch_size=2,
        in_channels=4,
        hidden_size=24,
        num_layers=2,
        num_refiner_layers=1,
        num_attention_heads=3,
        num_kv_heads=1,
        multiple_of=2,
        ffn_dim_multiplier=None,
        norm_eps=1e-5,
        scaling_factor=1.0,
        axes_dim_rope=(4, 2, 2),
        axes_lens=(64, 64, 64),
        cap_feat_dim=32,
    ),
    lambda: {
        "hidden_states": f(1, 4, 16, 16),
        "timestep": torch.tensor([0.5]),
        "encoder_hidden_states": f(1, 5, 32),
        "encoder_attention_mask": torch.ones(1, 5, dtype=torch.bool),
    },
)
df(
    "cogvideox",
    "CogVideoXTransformer3DModel",
    dict(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=4,
        time_embed_dim=8,
        text_embed_dim=8,
        num_layers=1,
        sample_width=8,
        sample_height=8,
        sample_frames=8,
        patch_size=2,
        temporal_compression_ratio=4,
        max_text_seq_length=8,
    ),
    lambda: {"hidden_states": f(1, 3, 4, 8, 8), "encoder_hidden_states": f(1, 8, 8), "timestep": T1()},
)
df(
    "mochi",
    "MochiTransformer3DModel",
    dict(
        patch_size=2,
        num_attention_heads=2,
        attention_head_dim=8,
        num_layers=2,
        pooled_projection_dim=16,
        in_channels=4,
        text_embed_dim=16,
        time_embed_dim=4,
        max_sequence_length=16,
    ),
    lambda: {
        "hidden_states": f(1, 4, 2, 8, 8),
        "encoder_hidden_states": f(1, 5, 16),
        "timestep": T1(),
        "encoder_attention_mask": torch.ones(1, 5, dtype=torch.bool),
    },
)
df(
    "stable-audio-dit",
    "StableAudioDiTModel",
    dict(
        sample_size=8,
        in_channels=3,
        num_layers=2,
        attention_head_dim=4,
        num_key_value_attention_heads=2,
        num_attention_heads=4,
        out_channels=3,
        cross_attention_dim=16,
        cross_attention_input_dim=16,
        global_states_input_dim=8,
        time_proj_dim=8,
    ),
    lambda: {
        "hidden_states": f(1, 3, 8),
        "timestep": torch.tensor([0.5]),
        "encoder_hidden_states": f(1, 5, 16),
        "global_hidden_states": f(1, 1, 8),
    },
    rotary_embedding=None,
)
df(
    "prior-transformer",
    "PriorTransformer",
    dict(
        num_attention_heads=2,
        attention_head_dim=4,
        num_layers=2,
        embedding_dim=8,
        num_embeddings=7,
        additional_embeddings=4,
    ),
    lambda: {
        "hidden_states": f(1, 8),
        "timestep": T1(),
        "proj_embedding": f(1, 8),
        "encoder_hidden_states": f(1, 7, 8),
    },
)
