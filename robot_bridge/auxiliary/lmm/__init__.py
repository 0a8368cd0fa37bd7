"""Language-and-vision models that answer questions on a picture, behind one protocol, `interface.LMM`."""
