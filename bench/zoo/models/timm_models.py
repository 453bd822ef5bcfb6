"""timm: classification of images."""

from .parts import add, f


def tm(name, size=64, batch=2, **kw):
    def build():
        import timm

        return timm.create_model(name, pretrained=False, **kw).eval(), (f(batch, 3, size, size),)

    add(f"timm/{name}", build)


SIZES = {
    "botnet26t_256": 256,
    "eca_botnext26ts_256": 256,
    "lambda_resnet26t": 256,
    "sebotnet33ts_256": 256,
    "adv_inception_v3": 128,
    "inception_v4": 128,
    "nasnetalarge": 128,
    "xception41": 128,
    "swinv2_tiny_window8_256": 256,
    "mobilevitv2_050": 256,
    "samvit_base_patch16": 1024,
}

for n in """
        adv_inception_v3 botnet26t_256 dm_nfnet_f0 dpn68 eca_botnext26ts_256 fbnetc_100 gernet_s hrnet_w18_small
        inception_v4 lambda_resnet26t lcnet_050 mixnet_s mnasnet_100 mobileone_s0 nasnetalarge nf_resnet26 nfnet_l0
        repvgg_a0 res2net50_26w_4s resnest14d rexnet_100 sebotnet33ts_256 selecsls42b semnasnet_075 spnasnet_100
        tf_efficientnet_b0 tinynet_e xception41 efficientnet_lite0 ecaresnet26t densenet121 convnext_atto
        convnextv2_atto inception_next_atto fastvit_t8 repvit_m0_9 edgenext_xx_small starnet_s1 poolformer_s12
        caformer_s18 convformer_s18 efficientvit_b0 mobilenet_edgetpu_v2_xs""".split():
    tm(n, SIZES.get(n, 64), 1 if SIZES.get(n) == 256 else 2)
for n in """
        vit_tiny_patch16_224 deit_tiny_distilled_patch16_224 beit_base_patch16_224 coat_tiny convit_tiny gmixer_24_224
        levit_128s mobilevitv2_050 resmlp_12_224 swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 swin_s3_tiny_224
        twins_pcpvt_small visformer_tiny volo_d1_224 xcit_nano_12_p16_224 sequencer2d_s maxvit_tiny_rw_224
        coatnet_nano_rw_224 efficientformerv2_s0 hiera_tiny_224 eva02_tiny_patch14_224 focalnet_tiny_srf gcvit_xxtiny
        mvitv2_tiny nextvit_small samvit_base_patch16 tiny_vit_5m_224 vit_relpos_small_patch16_224 rdnet_tiny
        hgnetv2_b0 swiftformer_xs shvit_s1""".split():
    tm(n, SIZES.get(n, 224), 1)
