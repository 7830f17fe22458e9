"""PhotoShift: the paper's claims on pretrained towers and real photographs."""
