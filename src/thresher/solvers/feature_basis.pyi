from thresher.solvers.forward_backward import Basis, Support
from thresher.summaries.moments import Moments

class FeatureBasis(Basis):
    def __init__(self, moments: Moments, members: Support = ()) -> None: ...
