"""Routing weights of adapter=mixse as the equation has them, one text after another."""

import torch


def literal(encoder, batch):
    """Return [R, T, E] float64, the softmax of theta h for each state h of a single text that enters a sublayer."""
    states, backbone = [], encoder.backbone

    def keep(_module, args, kwargs):
        states.append((args[0] if args else kwargs["hidden_states"])[0])

    modules = [module for layer in backbone.layers for module in (layer.self_attn, layer.mlp)]
    hooks = [module.register_forward_pre_hook(keep, with_kwargs=True) for module in modules]
    with torch.inference_mode():
        encoder.eval().run_backbone(batch)
    for hook in hooks:
        hook.remove()
    theta = backbone.mixture.router[0].detach().double()
    odds = torch.stack([x.double() @ theta.T for x in states]).exp()
    return odds / odds.sum(dim=-1, keepdim=True)
