START='''
models: list = ["gemma-3-270m", "smollm2-135m-instruct"]  # names, folders, .gguf files or hub ids
data: str = "embedded"  # or world, town, popqa_tp (@REVISION or :FILE), or a CSV of questions
n_facts: int = 480  # facts asked about, the same number from each relation
'''
SAMPLES='''n_samples: int = 10  # samples of each original question (paper: 10)
'''
TAIL='''max_new_tokens: int = 20  # tokens of an answer at most
sentence_encoder: str = "all-MiniLM-L6-v2"  # behind SCons and Cert: this, a folder or a hub id
seed: int = 0  # which facts are drawn, the samples' random numbers, and the splits
n_boot: int = 2000  # bootstrap resamples behind an interval
'''
