from producer._interpreted import Lane, Sent, produce

__all__ = ["Lane", "Sent", "produce"]
