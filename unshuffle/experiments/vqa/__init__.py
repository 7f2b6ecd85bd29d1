"""Visual question answering (the paper's section 4.4): sets of object proposals, which no order is given for."""
