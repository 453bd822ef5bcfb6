"""Images and videos."""

from .parts import f
from .transformers_parts import VIT, hf, image

# vision
for tag, model, config, extra in [
    ("vit", "ViTForImageClassification", "ViTConfig", {}),
    ("deit", "DeiTForImageClassification", "DeiTConfig", {}),
    ("beit", "BeitForImageClassification", "BeitConfig", dict(use_relative_position_bias=True)),
    ("data2vec-vision", "Data2VecVisionForImageClassification", "Data2VecVisionConfig", {}),
    ("dinov2", "Dinov2ForImageClassification", "Dinov2Config", {}),
    ("dinov3-vit", "DINOv3ViTModel", "DINOv3ViTConfig", {}),
    ("vit-mae", "ViTMAEModel", "ViTMAEConfig", {}),
    ("yolos", "YolosForObjectDetection", "YolosConfig", dict(image_size=[32, 32], num_detection_tokens=5)),
    ("ijepa", "IJepaForImageClassification", "IJepaConfig", {}),
    ("siglip-vision", "SiglipVisionModel", "SiglipVisionConfig", {}),
    ("clip-vision", "CLIPVisionModel", "CLIPVisionConfig", {}),
]:
    hf(tag, model, config, dict(VIT, **extra), image())
hf(
    "swin",
    "SwinForImageClassification",
    "SwinConfig",
    dict(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
    image(),
)
hf(
    "swinv2",
    "Swinv2ForImageClassification",
    "Swinv2Config",
    dict(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
    image(),
)
hf(
    "convnextv2",
    "ConvNextV2ForImageClassification",
    "ConvNextV2Config",
    dict(hidden_sizes=[16, 32], depths=[1, 1], num_stages=2),
    image(),
)
hf(
    "segformer",
    "SegformerForSemanticSegmentation",
    "SegformerConfig",
    dict(hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16),
    image(64),
)
hf(
    "resnet",
    "ResNetForImageClassification",
    "ResNetConfig",
    dict(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1]),
    image(),
)
hf(
    "regnet",
    "RegNetForImageClassification",
    "RegNetConfig",
    dict(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], groups_width=8),
    image(),
)
hf(
    "mobilevit",
    "MobileViTForImageClassification",
    "MobileViTConfig",
    dict(image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 16, 24, 32, 32, 32, 64]),
    image(64),
)
hf(
    "poolformer",
    "PoolFormerForImageClassification",
    "PoolFormerConfig",
    dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    image(64),
)
hf(
    "pvt",
    "PvtForImageClassification",
    "PvtConfig",
    dict(image_size=64, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4]),
    image(64),
)
hf(
    "focalnet",
    "FocalNetForImageClassification",
    "FocalNetConfig",
    dict(image_size=32, embed_dim=16, depths=[1, 1], hidden_sizes=[16, 32], focal_levels=[2, 2], focal_windows=[3, 3]),
    image(),
)
hf(
    "levit",
    "LevitForImageClassification",
    "LevitConfig",
    dict(image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 3, 4], key_dim=[8, 8, 8], depths=[1, 1, 1]),
    image(64),
)
hf("cvt", "CvtForImageClassification", "CvtConfig", {}, image(64))
hf(
    "dpt",
    "DPTForDepthEstimation",
    "DPTConfig",
    dict(
        VIT,
        num_hidden_layers=4,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[8, 8, 16, 16],
        fusion_hidden_size=8,
        is_hybrid=False,
        reassemble_factors=[4, 2, 1, 0.5],
    ),
    image(),
)
BACK = (
    "ResNetConfig",
    dict(
        embedding_size=16,
        hidden_sizes=[16, 16, 32, 32],
        depths=[1, 1, 1, 1],
        out_features=["stage2", "stage3", "stage4"],
    ),
)
DETR = dict(
    use_timm_backbone=False,
    backbone=None,
    backbone_config=(
        "ResNetConfig",
        dict(embedding_size=16, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], out_features=["stage4"]),
    ),
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=64,
    decoder_ffn_dim=64,
    num_queries=5,
)
hf(
    "rt-detr",
    "RTDetrForObjectDetection",
    "RTDetrConfig",
    dict(
        backbone_config=(
            "RTDetrResNetConfig",
            dict(
                embedding_size=16,
                hidden_sizes=[16, 16, 32, 32],
                depths=[1, 1, 1, 1],
                layer_type="basic",
                out_features=["stage2", "stage3", "stage4"],
            ),
        ),
        encoder_hidden_dim=32,
        encoder_in_channels=[16, 32, 32],
        feat_strides=[8, 16, 32],
        encoder_ffn_dim=64,
        encoder_attention_heads=2,
        d_model=32,
        num_queries=5,
        decoder_in_channels=[32, 32, 32],
        decoder_ffn_dim=64,
        decoder_layers=2,
        decoder_attention_heads=4,
        hidden_expansion=0.5,
    ),
    image(64),
)
hf(
    "maskformer-swin",
    "MaskFormerSwinModel",
    "MaskFormerSwinConfig",
    dict(image_size=32, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
    image(),
)
hf(
    "vitpose",
    "VitPoseForPoseEstimation",
    "VitPoseConfig",
    dict(
        backbone_config=(
            "VitPoseBackboneConfig",
            dict(
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                image_size=[64, 32],
                patch_size=[16, 16],
                out_indices=[2],
            ),
        ),
        num_labels=3,
    ),
    lambda: {"pixel_values": f(2, 3, 64, 32)},
)
hf(
    "timesformer",
    "TimesformerForVideoClassification",
    "TimesformerConfig",
    dict(VIT, num_frames=4),
    lambda: {"pixel_values": f(1, 4, 3, 32, 32)},
)
hf(
    "vivit",
    "VivitForVideoClassification",
    "VivitConfig",
    dict({k: v for k, v in VIT.items() if k != "patch_size"}, num_frames=4, tubelet_size=[2, 8, 8]),
    lambda: {"pixel_values": f(1, 4, 3, 32, 32)},
)
hf("vitdet", "VitDetModel", "VitDetConfig", dict({k: v for k, v in VIT.items() if k != "intermediate_size"}), image())
hf(
    "mobilenet-v2",
    "MobileNetV2ForImageClassification",
    "MobileNetV2Config",
    dict(image_size=64, depth_multiplier=0.35),
    image(64),
)
hf(
    "efficientnet",
    "EfficientNetForImageClassification",
    "EfficientNetConfig",
    dict(image_size=64, width_coefficient=0.5, depth_coefficient=0.5, hidden_dim=640),
    image(64),
)
