"""The paper's theory of contrastive finetuning as float64 functions, with the teacher policies that training uses.

Symbols of the paper and their names here:

    X_I      Problem.inputs        W⋆_FT    task_solution, Problem.best      ω_t        step_weights
    Y_FT     Problem.target        P_I      Subspace.inside                  ω_{0|t}    start_mass
    W_I⁰     Problem.start         I − P_I  Subspace.outside                 E^t        Path.error
    λ        strength              W_FT     direct                           W − ψ      Path.gap
    κ, α_k   tracer.core.kernels        W_L2     l2                               W_SD       distilled
"""
