"""Pictures of trees and of quality."""
