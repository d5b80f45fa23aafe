"""An external processor for Envoy: it is sent copies of what passes a gateway, and judges them."""
