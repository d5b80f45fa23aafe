"""A reverse proxy beside an agent in any language: passes bytes on unchanged, and judges copies."""
