"""Vision-language models behind one protocol, `interface.VLM`: a small one trained in the project, and CLIP through transformers."""
