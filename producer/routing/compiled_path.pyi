from producer.routing.interpreted_path import Lane, Sent, produce

__all__ = ["Lane", "Sent", "produce"]
