"""LLM2Vec's two probes: do tokens read ahead, and what does the mask alone change?"""
